package build

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// addGroup adds what the annotations of a group say of the host, as the oldest
// Ingress has them that has the leading one. Where they are bad nobody else's
// take their place. It tells whether routes got a policy.
func (l *layout) addGroup(f feature.Feature, parts []*part) (added bool) {
	askers := l.askers(f.Group, parts)
	if len(askers) == 0 {
		return false
	}
	owner := askers[0]
	policy, handshake, bad := l.decide(f, owner)
	if l.trace != nil {
		readings := owner.reader.Recording(func() { l.decide(f, owner) })
		l.trace.Host = append(l.trace.Host, HostSettings{owner.Ingress, l.builder.settingsOf(readings)})
	}
	for _, p := range askers[1:] {
		l.tellOverruled(f, p, owner)
	}
	l.findings = append(l.findings, problemFindings(objectName(owner.Ingress), owner.reader.Problems())...)
	if bad {
		policy = f.Group.Bad
	} else {
		l.grouped = handshake
	}
	if bad && policy == nil {
		for i := range l.routes {
			l.routes[i].Denied = true
		}
	}
	if policy == nil {
		return false
	}
	l.addToAll(f, policy)
	return true
}

// askers are the Ingresses that have the leading annotation, the oldest first.
// Each has a reader of its own: what is bad of a group means nothing for the
// routes of that Ingress alone.
func (l *layout) askers(g *feature.Group, parts []*part) []*part {
	var askers []*part
	leading := l.builder.prefix + "/" + g.Leading.Declaration().Annotation
	for _, p := range parts {
		if _, asks := p.Annotations[leading]; asks {
			reader := l.builder.reader(p.Ingress, l.config, l.view).On(p.reader.Host()).Deciding()
			reader.Police(l.builder.risks)
			askers = append(askers, &part{Ingress: p.Ingress, reader: reader})
		}
	}
	return askers
}

// decide is what an Ingress says of the host by a feature that is a group, and
// whether it can't be followed.
func (l *layout) decide(f feature.Feature, p *part) (policy any, handshake model.TLSPolicy, bad bool) {
	handshake = l.grouped
	if f.Host != nil {
		policy = f.Host(p.reader)
	}
	if f.Handshake != nil {
		f.Handshake(p.reader, &handshake)
	}
	return policy, handshake, p.reader.Denied()
}
