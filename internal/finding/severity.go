package finding

import "slices"

// A Severity is how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	// Denial is for what makes requests be answered 503.
	Denial Severity = "denial"
	// Error is for what is not served as written, and stays so until an object is changed.
	Error Severity = "error"
	// Notice is for what is served as written, or will be by itself.
	Notice Severity = "notice"
)

// Severity is that of all findings of a code, unless they deny requests.
func (c Code) Severity() Severity {
	switch c {
	case OldPrefix, NoEffect, Unexpected, HostOutsideTLS, HostShared, IncompleteChain, Expires, NoOCSPResponse, Waits, Unresolved, Unhealthy, OldVersion:
		return Notice
	}
	return Error
}

// Severity is how bad the finding is.
func (f Finding) Severity() Severity {
	if f.Denies {
		return Denial
	}
	return f.Code.Severity()
}

// WorstFirst returns findings by severity, otherwise in the order that they have.
func WorstFirst(list []Finding) []Finding {
	ranks := []Severity{Denial, Error, Notice}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Finding) int {
		return slices.Index(ranks, a.Severity()) - slices.Index(ranks, b.Severity())
	})
	return list
}
