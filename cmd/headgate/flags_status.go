package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/cluster/election"
	"github.com/headgate/headgate/internal/cluster/status"
)

// statusOptions are the flags about the status of Ingresses and the election of the
// leader.
type statusOptions struct {
	updateStatus, updateStatusOnShutdown bool
	statusUpdateInterval                 int
	publishService, publishAddresses     string
	nodeInternalIP                       bool

	electionID      string
	electionTTL     time.Duration
	disableElection bool
}

func (o *statusOptions) addStatusFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.updateStatus, "update-status", true, "write the addresses of Headgate into the status of Ingresses")
	f.BoolVar(&o.updateStatusOnShutdown, "update-status-on-shutdown", true, "remove the addresses when the last replica ends")
	f.IntVar(&o.statusUpdateInterval, "status-update-interval", 60, "seconds between checks for changes of the status by other clients, and of the nodes' addresses; at least 5")
	f.StringVar(&o.publishService, "publish-service", "", "NAMESPACE/NAME of the Service with the addresses for Ingresses (default: the addresses of the nodes of Headgate's pods)")
	f.StringVar(&o.publishAddresses, "publish-status-address", "", "addresses for Ingresses: IP addresses and DNS names, separated by commas")
	f.BoolVar(&o.nodeInternalIP, "report-node-internal-ip-address", false, "use the nodes' internal addresses even if they have external ones")
	f.StringVar(&o.electionID, "election-id", "ingress-controller-leader", "name of the Lease for the election of the leader")
	f.DurationVar(&o.electionTTL, "election-ttl", election.DefaultTTL, "maximum time until another replica leads when the leader dies; whole seconds")
	f.BoolVar(&o.disableElection, "disable-leader-election", false, "elect no leader, so that no replica writes the status of Ingresses")
}

func (o *statusOptions) checkStatus() error {
	if o.publishService != "" && o.publishAddresses != "" {
		return errors.New("--publish-service and --publish-status-address are mutually exclusive")
	}
	if _, err := status.ParseAddresses(o.publishAddresses); err != nil {
		return fmt.Errorf("invalid value of --publish-status-address: %w", err)
	}
	if o.electionID == "" && !o.disableElection {
		return errors.New("--election-id must not be empty; use --disable-leader-election for no election")
	}
	if !o.disableElection && validation.IsDNS1123Subdomain(o.electionID) != nil {
		return invalidValue(o.electionID, "election-id", "the name of a Lease: lower-case letters, digits, - and .")
	}
	_, err := objectName("publish-service", o.publishService)
	return err
}

// writesStatus reports whether replicas may write the status.
func (o *statusOptions) writesStatus() bool { return o.updateStatus && !o.disableElection }

// place is the source of the addresses.
func (o *statusOptions) place() (status.AddressSource, error) {
	place := status.AddressSource{Internal: o.nodeInternalIP, Pod: knownPod()}
	var err error
	if place.Addresses, err = status.ParseAddresses(o.publishAddresses); err != nil {
		return status.AddressSource{}, err
	}
	place.Service, err = objectName("publish-service", o.publishService)
	return place, err
}

// interval is the interval of checks of the status.
func (o *statusOptions) interval() time.Duration { return seconds(max(o.statusUpdateInterval, 5)) }

// podOfEnvironment is the pod of this process, by the variables that ingress-nginx
// reads too.
func podOfEnvironment() types.NamespacedName {
	return types.NamespacedName{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")}
}

// knownPod is the Pod of this process by its environment, or empty if a variable is
// missing.
func knownPod() types.NamespacedName {
	pod := podOfEnvironment()
	if pod.Namespace == "" || pod.Name == "" {
		return types.NamespacedName{}
	}
	return pod
}

// ownNamespace is that of the pod. Outside of a pod, it is that of the ConfigMap, or
// "default".
func ownNamespace(configMap types.NamespacedName) string {
	return cmp.Or(podOfEnvironment().Namespace, configMap.Namespace, "default")
}

// candidate is the namespace of the Lease, and the name of this process in the
// election: that of the pod. Outside of a pod, the namespace is that of the
// ConfigMap, or "default", and the name is unique even on the same machine: two
// processes with the same name would both lead.
func candidate(configMap types.NamespacedName) (namespace, identity string, err error) {
	pod := podOfEnvironment()
	namespace = ownNamespace(configMap)
	if pod.Name != "" {
		return namespace, pod.Name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", "", fmt.Errorf("make a name for the election: %w", err)
	}
	return namespace, host + "_" + rand.Text(), nil
}
