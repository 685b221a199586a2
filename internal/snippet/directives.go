package snippet

// A kind is a directive that is taken.
type kind struct {
	// in is where it may stand.
	in where
	// once is set where NGINX refuses a second one.
	once bool
	// guards is set where the paths must not be served without it.
	guards bool
	take   func(*parser, *scope, *directive) error
}

// directives are those that are taken.
func directives() map[string]kind {
	return map[string]kind{
		"set":      {in: steps, guards: true, take: (*parser).set},
		"if":       {in: steps, guards: true, take: (*parser).ifBlock},
		"return":   {in: steps, guards: true, take: (*parser).returns},
		"rewrite":  {in: steps, guards: true, take: (*parser).rewrite},
		"break":    {in: steps, guards: true, take: (*parser).breaks},
		"location": {in: locations | atServer, guards: true, take: (*parser).location},

		"add_header":               {in: anywhere, take: (*parser).addHeader},
		"more_set_headers":         {in: anywhere, take: (*parser).moreHeaders},
		"more_clear_headers":       {in: anywhere, take: (*parser).moreHeaders},
		"more_set_input_headers":   {in: anywhere, guards: true, take: (*parser).moreHeaders},
		"more_clear_input_headers": {in: anywhere, guards: true, take: (*parser).moreHeaders},
		"proxy_set_header":         {in: locations | atServer, take: (*parser).proxySetHeader},
		"grpc_set_header":          {in: locations | atServer, take: (*parser).proxySetHeader},
		"proxy_hide_header":        {in: locations | atServer, take: (*parser).hideHeader},
		"proxy_pass_header":        {in: locations | atServer, take: (*parser).hideHeader},
	}
}
