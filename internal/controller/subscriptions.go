package controller

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

// Subscribe passes new and removed references to a source. The
// channel is closed when everything that exists of the new ones was delivered.
// The function must not block.
type Subscribe[Name any] func(added, removed []Name) (delivered <-chan struct{})

// Subscriptions are for sources that deliver only objects with a reference.
type Subscriptions struct {
	// Secrets is nil if the source delivers all Secrets.
	Secrets Subscribe[types.NamespacedName]
	// ConfigMaps does the same for ConfigMaps, except the one with Headgate's
	// options.
	ConfigMaps Subscribe[types.NamespacedName]
	// Addresses asks for the addresses of DNS names. It is nil if names are not
	// looked up.
	Addresses Subscribe[string]
	// Issuers asks for the certificates at the URLs of issuers. It is nil if they
	// are not fetched.
	Issuers Subscribe[string]
	// OCSPResponses asks for the OCSP responses of certificates, and no longer
	// for those of the removed ones. It must not block. It is nil if they are
	// not fetched.
	OCSPResponses func(added []source.Subject, removed []string)
	// Health asks for the health of a backend's endpoints, and replaces what it asked for
	// of the same backend before. It must not block. It is nil if endpoints are not checked.
	Health func(source.Checked)
	// GeoDatabases asks for the databases of where addresses are. It must not block. It is nil if there are none.
	GeoDatabases func()
}

// followHealth has the endpoints of a backend checked, or no longer if there are none. It does
// not wait: an endpoint is healthy until its checks have failed.
func (c *Controller) followHealth(built unit.Built) {
	if c.settings.Subscriptions.Health == nil {
		return
	}
	backend, _ := built.Model.(model.Backend)
	namespace, _, _ := strings.Cut(built.Name, "/")
	c.settings.Subscriptions.Health(source.Checked{
		Backend: built.Name, Namespace: namespace, Endpoints: backend.Health.Checked, Check: source.HealthCheck(backend.Check),
	})
}
