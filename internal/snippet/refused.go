package snippet

// refusalOf is about a directive that is not taken.
func refusalOf(d *directive) Refusal {
	return Refusal{Line: d.Line, Directive: d.Directive, Reason: "the directive is not supported", Guards: true}
}
