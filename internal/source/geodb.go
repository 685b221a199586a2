package source

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A GeoDatabase is a database of where addresses are, as an object. Its name is that of its edition, such as
// GeoLite2-City, and its namespace is empty.
type GeoDatabase struct {
	metav1.ObjectMeta
	// Digest is that of the content of the copy that NGINX can read; empty if there is none.
	Digest string
	// Problem is why there is no copy, or no newer one; empty if there is no problem. It stays the same while the
	// problem lasts.
	Problem string
}
