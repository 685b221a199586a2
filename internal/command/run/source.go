package run

import (
	"context"
	"log/slog"
	"net"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/observe/event"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/check"
	"github.com/headgate/headgate/internal/source/dns"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/source/kube"
	"github.com/headgate/headgate/internal/source/nginxtemplate"
	"github.com/headgate/headgate/internal/source/pki"
	"github.com/headgate/headgate/internal/store"
)

// A from is where objects come from.
type from struct {
	run  controller.Source
	want controller.Subscriptions
	// objects are the settings of the store.
	objects store.Settings
	// client is the cluster's client; nil for a folder.
	client *client.Clients
	// notices write Events.
	// served and reloaded report what was done, for Events.
	served   func(ingress types.NamespacedName)
	reloaded func(error)
	// files returns the manifest files that contain an object; nil for a cluster.
	files func(object string) []string
}

// source is the folder, if one is given, otherwise the cluster.
func (o program) source(findings *tracker.Tracker, m *metrics.Metrics, log *slog.Logger) (from, error) {
	objects, err := o.Flags.Store(o.ManifestsDir != "")
	if err != nil {
		return from{}, err
	}
	objects.Listeners = o.listeners()
	// A host with rules of several groups would take what guards those of one to the edges of another.
	objects.OwnHosts = o.EdgeGroups()
	f, err := o.sourceOf(objects, findings, m, log)
	if err != nil {
		return from{}, err
	}
	names := dns.New(dns.System(objects.LocalAddresses, log))
	f.run, f.want.Addresses = controller.MergeSources(f.run, names.Run), names.Subscribe
	health := check.New(check.Settings{Log: log})
	m.Registry.MustRegister(metrics.Health(health.State))
	f.run, f.want.Health = controller.MergeSources(f.run, health.Run), health.Subscribe
	templates := nginxtemplate.Open(o.Template, log)
	objects.Template = templates.Object()
	f.run = controller.MergeSources(f.run, templates.Run)
	f.objects = objects
	return o.authorities(f, log), nil
}

// authorities adds sources for certificate authorities. The administrator writes a
// folder, so its certificates may name a responder on the same machine.
func (o program) authorities(f from, log *slog.Logger) from {
	settings := pki.Settings{AllowLocal: o.ManifestsDir != "", Log: log}
	responses := pki.NewOCSPResponses(settings)
	f.run, f.want.OCSPResponses = controller.MergeSources(f.run, responses.Run), responses.Subscribe
	if f.objects.CompleteChains {
		issuers := pki.NewIssuers(settings)
		f.run, f.want.Issuers = controller.MergeSources(f.run, issuers.Run), issuers.Subscribe
	}
	return f
}

func (o program) sourceOf(objects store.Settings, findings *tracker.Tracker, m *metrics.Metrics, log *slog.Logger) (from, error) {
	if o.ManifestsDir != "" {
		return o.folder(findings)
	}
	settings := o.Kube(objects, o.ownPod(log), o.WritesStatus())
	settings.Namespaces = settings.Namespaces || o.EdgeGroups()
	verbosity, modules := o.Verbosity()
	if err := selection.ShareLog(log, verbosity, modules); err != nil {
		return from{}, err
	}
	clients, err := o.Connect("headgate/" + o.build.Version)
	if err != nil {
		return from{}, err
	}
	settings.Clients, settings.Log = clients, log
	o.warnWithoutPod(log)
	cluster := kube.New(settings)
	events := event.New(event.Settings{
		Client: settings.Clients.Objects, UID: cluster.UID, Pod: knownPod(), NoSync: o.DisableSyncEvents,
		Written: m.Events, Log: log,
	})
	findings.Notify(events.Findings)
	return from{
		run: controller.MergeSources(cluster.Run, func(ctx context.Context, _ func(context.Context, []source.Change)) error {
			events.Run(ctx)
			return nil
		}),
		want:   controller.Subscriptions{Secrets: cluster.SubscribeSecrets, ConfigMaps: cluster.SubscribeConfigMaps},
		client: settings.Clients.Objects,
		served: events.Taken, reloaded: events.Reloaded,
	}, nil
}

// warnWithoutPod logs that this process, which is in a Pod, does not know which one.
func (o program) warnWithoutPod(log *slog.Logger) {
	if o.Kubeconfig == "" && o.APIServerHost == "" && knownPod().Name == "" {
		log.Warn("the environment variables POD_NAME and POD_NAMESPACE with Headgate's Pod are not set",
			"effect", "there are no Events of the Pod, and the leader has a random name")
	}
}

// ownPod is the Pod of this process, if its zone is needed. That of a control is not: clients connect to edges, whose zones
// it does not know.
func (o program) ownPod(log *slog.Logger) types.NamespacedName {
	if !o.Topology {
		return types.NamespacedName{}
	}
	if o.IsControl() {
		log.Warn("--enable-topology-aware-routing has no effect in a control, as it does not know the zones of edges",
			"effect", "topology hints are ignored")
		return types.NamespacedName{}
	}
	pod := knownPod()
	if pod.Name == "" {
		log.Warn("--enable-topology-aware-routing requires the environment variables POD_NAME and POD_NAMESPACE with Headgate's Pod",
			"effect", "topology hints are ignored")
	}
	return pod
}

func (o program) folder(findings *tracker.Tracker) (from, error) {
	folder, err := file.New(o.ManifestsDir, func(problems map[string][]file.Problem) {
		findings.Update(selection.ManifestFindings(o.ManifestsDir, problems))
	})
	if err != nil {
		return from{}, err
	}
	return from{run: folder.Run, files: selection.Holders(o.ManifestsDir, folder.Files)}, nil
}

// listeners are the addresses at which this instance is reached: no tenant's backend
// may be there.
func (o program) listeners() []netip.AddrPort {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		// Loopback addresses are refused in any case.
		return nil
	}
	var list []netip.AddrPort
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		for _, p := range o.Listening() {
			list = append(list, netip.AddrPortFrom(prefix.Addr().Unmap(), p.Port))
		}
	}
	return list
}
