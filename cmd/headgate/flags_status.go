package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/election"
	"github.com/headgate/headgate/internal/status"
)

// statusOptions are what the flags say of the status of Ingresses, and of who
// writes it.
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
	f.BoolVar(&o.updateStatus, "update-status", true, "write into Ingresses at which addresses they are served")
	f.BoolVar(&o.updateStatusOnShutdown, "update-status-on-shutdown", true, "remove these addresses when the last replica ends")
	f.IntVar(&o.statusUpdateInterval, "status-update-interval", 60, "seconds until what others wrote into a status is seen to, and nodes are asked for their addresses again; at least 5")
	f.StringVar(&o.publishService, "publish-service", "", "NAMESPACE/NAME of the Service whose addresses are those of Ingresses (default: the nodes' of Headgate's pods)")
	f.StringVar(&o.publishAddresses, "publish-status-address", "", "the addresses of Ingresses: IP addresses and DNS names with commas in between")
	f.BoolVar(&o.nodeInternalIP, "report-node-internal-ip-address", false, "take the nodes' internal addresses where they have external ones too")
	f.StringVar(&o.electionID, "election-id", "ingress-controller-leader", "name of the Lease by which the replica that writes is found")
	f.DurationVar(&o.electionTTL, "election-ttl", election.DefaultTTL, "how long it takes at most until another replica writes when the one that did so dies; whole seconds")
	f.BoolVar(&o.disableElection, "disable-leader-election", false, "let no replica write the status of Ingresses")
}

func (o *statusOptions) checkStatus() error {
	if o.publishService != "" && o.publishAddresses != "" {
		return errors.New("--publish-service and --publish-status-address exclude each other")
	}
	if _, err := status.ParseAddresses(o.publishAddresses); err != nil {
		return fmt.Errorf("--publish-status-address: %w", err)
	}
	if o.electionID == "" && !o.disableElection {
		return errors.New("--election-id names a Lease and can't be empty; --disable-leader-election does without one")
	}
	_, err := objectName("publish-service", o.publishService)
	return err
}

// writesStatus tells whether a replica may come to write.
func (o *statusOptions) writesStatus() bool { return o.updateStatus && !o.disableElection }

// place is where the addresses come from.
func (o *statusOptions) place() (status.Place, error) {
	place := status.Place{Internal: o.nodeInternalIP}
	var err error
	if place.Addresses, err = status.ParseAddresses(o.publishAddresses); err != nil {
		return status.Place{}, err
	}
	if place.Service, err = objectName("publish-service", o.publishService); err != nil {
		return status.Place{}, err
	}
	place.Pod = knownPod()
	return place, nil
}

// interval is how often the status is looked at.
func (o *statusOptions) interval() time.Duration { return seconds(max(o.statusUpdateInterval, 5)) }

// podOfEnvironment is the pod that this runs in, as its manifest says by the
// variables that ingress-nginx reads too.
func podOfEnvironment() types.NamespacedName {
	return types.NamespacedName{Namespace: os.Getenv("POD_NAMESPACE"), Name: os.Getenv("POD_NAME")}
}

// candidate is the namespace of the Lease and this process's name in it: the
// pod's. Outside a pod the namespace is the ConfigMap's, or else "default", and
// the name is one that no other process has, be it on the same machine: two
// that took themselves for the same one would both lead.
func candidate(configMap types.NamespacedName) (namespace, identity string, err error) {
	pod := podOfEnvironment()
	if namespace = pod.Namespace; namespace == "" {
		namespace = configMap.Namespace
	}
	if namespace == "" {
		namespace = "default"
	}
	if pod.Name != "" {
		return namespace, pod.Name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", "", fmt.Errorf("find a name for the election: %w", err)
	}
	return namespace, host + "_" + rand.Text(), nil
}
