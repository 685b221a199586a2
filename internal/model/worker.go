package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// WorkerSettings are what each worker process of NGINX is bounded by, and how it takes
// connections.
type WorkerSettings struct {
	// Connections is the number of connections of a worker, those to backends included. 0 is
	// three quarters of the files that it may open.
	Connections int
	// OpenFiles is the number of files that a worker may open, 0 for as many as the process of
	// the controller may.
	OpenFiles int
	// CPUs say on which processors workers run.
	CPUs CPUAffinity
	// MultiAccept takes all connections that wait, instead of one at a time.
	MultiAccept bool
	// WritesInThreads has threads write responses to temporary files.
	WritesInThreads bool
	// Debugged are clients of which NGINX logs all that it does.
	Debugged Networks
}

// CPUAffinity says on which processors workers run, as NGINX reads it. The zero value leaves
// it to the kernel.
type CPUAffinity struct{ text string }

// NGINX takes no mask with more digits, and masks beyond the number of workers have no effect.
const (
	maxMask  = 1024
	maxMasks = 1024
)

var maskForm = regexp.MustCompile(`^0*1[01]*$`)

// NewCPUAffinity reads masks, one for each worker, or auto, maybe with a mask of the processors
// to use.
func NewCPUAffinity(text string) (CPUAffinity, error) {
	words := strings.Fields(text)
	masks, most := words, maxMasks
	if len(words) > 0 && words[0] == "auto" {
		masks, most = words[1:], 1
	}
	bad := func(mask string) bool { return len(mask) > maxMask || !maskForm.MatchString(mask) }
	if len(masks) > most || slices.ContainsFunc(masks, bad) {
		return CPUAffinity{}, fmt.Errorf("must be auto, auto and a mask, or up to %d masks such as 0101, of up to %d digits with a 1 among them", maxMasks, maxMask)
	}
	return CPUAffinity{strings.Join(words, " ")}, nil
}

func (c CPUAffinity) String() string { return c.text }

// HashSizes are the least sizes of NGINX's hash tables. Headgate's own sizes have precedence
// where they are larger.
type HashSizes struct {
	MapBucket                           int
	ProxyHeadersBucket, ProxyHeadersMax int
	ServerNamesBucket, ServerNamesMax   int
	VariablesBucket, VariablesMax       int
}

// A MIMEType is the type of a response's content, without parameters. The zero value is
// text/html.
type MIMEType struct{ text string }

var mimeForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,126}/[A-Za-z0-9][A-Za-z0-9.+_-]{0,126}$`)

// NewMIMEType reads a type such as application/octet-stream.
func NewMIMEType(text string) (MIMEType, error) {
	if text == "" {
		return MIMEType{}, nil
	}
	if !mimeForm.MatchString(text) {
		return MIMEType{}, fmt.Errorf("must be a type such as text/html or application/octet-stream, of letters, digits and .+_-")
	}
	return MIMEType{text}, nil
}

func (m MIMEType) String() string {
	if m.text == "" {
		return "text/html"
	}
	return m.text
}
