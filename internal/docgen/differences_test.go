package docgen

// annotationDifferences are the risks and defaults of annotations that are not
// the predecessor's, and what bad values do.
func annotationDifferences() []difference {
	opened := "there it threw the whole authentication away, and the paths were open"
	return []difference{
		{"auth-always-set-cookie", "bad value", "deny", "default", opened},
		{"auth-cache-duration", "bad value", "deny", "default", opened},
		{"auth-request-redirect", "bad value", "deny", "default", opened},
		{"custom-headers", "bad value", "deny", "default", "there any other thing that is wrong with it denied"},
	}
}

// keyDifferences are the defaults of keys that are not the predecessor's.
func keyDifferences() []difference { return nil }
