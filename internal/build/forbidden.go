package build

import networkingv1 "k8s.io/api/networking/v1"

// forbidden tells whether an Ingress goes beyond what the administrator allows.
// Its own paths answer 503, and it says nothing of what is not its own: of
// names, of whole hosts, and of the paths that others have there.
func (b *Builder) forbidden(ing *networkingv1.Ingress, v View) bool {
	reader := b.reader(ing, b.settings(v).config, v)
	reader.Police(b.risks)
	return reader.Forbidden()
}
