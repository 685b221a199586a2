package source

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Template is the administrator's template of nginx.conf, as an object. Its name is that of its
// file, and its namespace is empty.
type Template struct {
	metav1.ObjectMeta
	Text string
}
