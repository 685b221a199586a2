package docgen

// annotationDifferences are the risks and defaults of annotations that are not
// the predecessor's, and what bad values do.
func annotationDifferences() []difference {
	opened := "there it threw the whole authentication away, and the paths were open"
	adds := "it only adds something: without it the paths let nobody in who is not to get there"
	return []difference{
		{"auth-always-set-cookie", "bad value", "deny", "default", opened},
		{"auth-cache-duration", "bad value", "deny", "default", opened},
		{"auth-request-redirect", "bad value", "deny", "default", opened},
		{"client-body-buffer-size", "bad value", "default", "deny", adds},
		{"default-backend", "bad value", "default", "deny", adds},
		{"from-to-www-redirect", "bad value", "default", "deny", adds},
		{"permanent-redirect-code", "bad value", "default", "deny", adds},
		{"relative-redirects", "bad value", "default", "deny", adds},
		{"server-alias", "bad value", "default", "deny", adds},
		{"temporal-redirect-code", "bad value", "default", "deny", adds},
		{"x-forwarded-prefix", "bad value", "default", "deny", adds},
	}
}

// keyDifferences are the defaults of keys that are not the predecessor's.
func keyDifferences() []difference { return nil }
