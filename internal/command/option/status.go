package option

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/cluster/election"
	"github.com/headgate/headgate/internal/cluster/status"
	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/command/usage"
)

// Status are the flags about the status of Ingresses and the election of the
// leader.
type Status struct {
	UpdateStatus, UpdateStatusOnShutdown bool
	statusUpdateInterval                 int
	PublishService, PublishAddresses     string
	nodeInternalIP                       bool

	ElectionID      string
	ElectionTTL     time.Duration
	DisableElection bool
}

func (o *Status) addStatusFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.UpdateStatus, "update-status", true, "write the addresses of Headgate into the status of Ingresses")
	f.BoolVar(&o.UpdateStatusOnShutdown, "update-status-on-shutdown", true, "remove the addresses when the last replica ends; a control leaves them while there are Pods of edges")
	f.IntVar(&o.statusUpdateInterval, "status-update-interval", 60, "seconds between checks for changes of the status by other clients, and of the nodes' addresses; at least 5")
	f.StringVar(&o.PublishService, "publish-service", "", "NAMESPACE/NAME of the Service with the addresses for Ingresses (default: the addresses of the nodes of Headgate's pods, or of the edges of a control)")
	f.StringVar(&o.PublishAddresses, "publish-status-address", "", "addresses for Ingresses: IP addresses and DNS names, separated by commas")
	f.BoolVar(&o.nodeInternalIP, "report-node-internal-ip-address", false, "use the nodes' internal addresses even if they have external ones")
	f.StringVar(&o.ElectionID, "election-id", "ingress-controller-leader", "name of the Lease for the election of the leader")
	f.DurationVar(&o.ElectionTTL, "election-ttl", election.DefaultTTL, "maximum time until another replica leads when the leader dies; whole seconds")
	f.BoolVar(&o.DisableElection, "disable-leader-election", false, "elect no leader, so that no replica writes the status of Ingresses")
}

func (o *Status) checkStatus() error {
	if o.PublishService != "" && o.PublishAddresses != "" {
		return errors.New("--publish-service and --publish-status-address are mutually exclusive")
	}
	if _, err := status.ParseAddresses(o.PublishAddresses); err != nil {
		return fmt.Errorf("invalid value of --publish-status-address: %w", err)
	}
	if o.ElectionID == "" && !o.DisableElection {
		return errors.New("--election-id must not be empty; use --disable-leader-election for no election")
	}
	if !o.DisableElection && validation.IsDNS1123Subdomain(o.ElectionID) != nil {
		return usage.InvalidValue(o.ElectionID, "election-id", "the name of a Lease: lower-case letters, digits, - and .")
	}
	_, err := selection.ObjectName("publish-service", o.PublishService)
	return err
}

// WritesStatus reports whether replicas may write the status.
func (o *Status) WritesStatus() bool { return o.UpdateStatus && !o.DisableElection }

// AddressSource is the source of the addresses, with the pod of this process.
func (o *Status) AddressSource(pod types.NamespacedName) (status.AddressSource, error) {
	place := status.AddressSource{Internal: o.nodeInternalIP, Pod: pod}
	var err error
	if place.Addresses, err = status.ParseAddresses(o.PublishAddresses); err != nil {
		return status.AddressSource{}, err
	}
	place.Service, err = selection.ObjectName("publish-service", o.PublishService)
	return place, err
}

// StatusInterval is the interval of checks of the status.
func (o *Status) StatusInterval() time.Duration {
	return time.Duration(max(o.statusUpdateInterval, 5)) * time.Second
}
