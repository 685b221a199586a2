package snippet

import "sync"

// A kind is a directive that is taken.
type kind struct {
	// in is where it may stand.
	in where
	// least and most are how many arguments it has.
	least, most int
	// block is set where a block follows.
	block bool
	// once is set where NGINX refuses a second one.
	once bool
	// guards is set where the paths must not be served without it.
	guards bool
	take   func(*parser, *scope, *directive) error
}

// many is a number of arguments without a limit.
const many = -1

// directives are those that are taken.
var directives = sync.OnceValue(func() map[string]kind {
	all := map[string]kind{
		"set":      {in: steps, least: 2, most: 2, guards: true, take: (*parser).set},
		"if":       {in: steps, least: 1, most: many, block: true, guards: true, take: (*parser).ifBlock},
		"return":   {in: steps, least: 1, most: 2, guards: true, take: (*parser).returns},
		"rewrite":  {in: steps, least: 2, most: 3, guards: true, take: (*parser).rewrite},
		"break":    {in: steps, guards: true, take: (*parser).breaks},
		"location": {in: locations | atServer, least: 1, most: 2, block: true, guards: true, take: (*parser).location},

		"add_header":               {in: anywhere, least: 2, most: 3, take: (*parser).addHeader},
		"expires":                  {in: anywhere, least: 1, most: 2, once: true, take: (*parser).expires},
		"more_set_headers":         {in: anywhere, least: 1, most: many, take: (*parser).moreHeaders},
		"more_clear_headers":       {in: anywhere, least: 1, most: many, take: (*parser).moreHeaders},
		"more_set_input_headers":   {in: anywhere, least: 1, most: many, guards: true, take: (*parser).moreHeaders},
		"more_clear_input_headers": {in: anywhere, least: 1, most: many, guards: true, take: (*parser).moreHeaders},
		"proxy_set_header":         {in: locations | atServer, least: 2, most: 2, take: (*parser).proxySetHeader},
		"grpc_set_header":          {in: locations | atServer, least: 2, most: 2, take: (*parser).proxySetHeader},
		"proxy_hide_header":        {in: locations | atServer, least: 1, most: 1, take: (*parser).hideHeader},
		"proxy_pass_header":        {in: locations | atServer, least: 1, most: 1, take: (*parser).hideHeader},

		"allow":            {in: locations | atServer | inMethods, least: 1, most: 1, guards: true, take: (*parser).access},
		"deny":             {in: locations | atServer | inMethods, least: 1, most: 1, guards: true, take: (*parser).access},
		"limit_except":     {in: locations, least: 1, most: many, block: true, once: true, guards: true, take: (*parser).limitExcept},
		"internal":         {in: locations, guards: true, take: (*parser).internal},
		"auth_request_set": {in: locations | atServer, least: 2, most: 2, take: (*parser).authRequestSet},
		"error_page":       {in: anywhere, least: 2, most: many, take: (*parser).errorPage},
		"limit_rate":       {in: anywhere, least: 1, most: 1, once: true, take: (*parser).limitRate},
		"limit_rate_after": {in: anywhere, least: 1, most: 1, once: true, take: (*parser).limitRate},
		"default_type":     {in: locations | atServer, least: 1, most: 1, once: true, take: (*parser).defaultType},
		"access_log":       {in: anywhere, least: 1, most: many, take: (*parser).accessLog},
	}
	addSettings(all)
	addIdle(all)
	return all
})
