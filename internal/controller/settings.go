package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/publisher"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/store"
)

// Settings are the parts and options of a Controller. Its Tracker keeps the findings of all units.
type Settings struct {
	edge.Settings
	// Publisher publishes units for edges. If it is nil, NGINX serves them here.
	Publisher *publisher.Publisher
	Store     store.Settings
	// AnnotationPrefix is the prefix of annotations, without the slash.
	AnnotationPrefix string
	// Expiry follows the certificates that names show.
	Expiry *expiry.Watch
	// Subscriptions are the functions by which sources learn of references.
	Subscriptions Subscriptions
	// Selected receives the Ingresses that are served or no longer served, once
	// NGINX serves them. It must not block. It may be nil.
	Selected func(store.Selection)
	// Served reports each Ingress that was added or changed after the first load and is served. It must not
	// block. It may be nil.
	Served func(ingress types.NamespacedName)
	// Overview is what people look at. It may be nil.
	Overview *overview.Table
}
