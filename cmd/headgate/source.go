package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/finding"
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
	notices controller.Notices
	// files returns the manifest files that contain an object; nil for a cluster.
	files func(object string) []string
}

// source is the folder, if one is given, otherwise the cluster.
func (o options) source(findings *tracker.Tracker, m *metrics.Metrics, log *slog.Logger) (from, error) {
	objects, err := o.storeSettings(o.manifestsDir != "")
	if err != nil {
		return from{}, err
	}
	objects.Listeners = o.listeners()
	f, err := o.sourceOf(objects, findings, m, log)
	if err != nil {
		return from{}, err
	}
	names := dns.New(dns.System(objects.LocalAddresses, log))
	f.run, f.want.Addresses = controller.MergeSources(f.run, names.Run), names.Subscribe
	health := check.New(check.Settings{Log: log})
	m.Registry.MustRegister(metrics.Health(health.State))
	f.run, f.want.Health = controller.MergeSources(f.run, health.Run), health.Subscribe
	templates := nginxtemplate.Open(o.template, log)
	objects.Template = templates.Object()
	f.run = controller.MergeSources(f.run, templates.Run)
	f.objects = objects
	return o.authorities(f, log), nil
}

// authorities adds sources for certificate authorities. The administrator writes a
// folder, so its certificates may name a responder on the same machine.
func (o options) authorities(f from, log *slog.Logger) from {
	settings := pki.Settings{AllowLocal: o.manifestsDir != "", Log: log}
	responses := pki.NewOCSPResponses(settings)
	f.run, f.want.OCSPResponses = controller.MergeSources(f.run, responses.Run), responses.Subscribe
	if f.objects.CompleteChains {
		issuers := pki.NewIssuers(settings)
		f.run, f.want.Issuers = controller.MergeSources(f.run, issuers.Run), issuers.Subscribe
	}
	return f
}

func (o options) sourceOf(objects store.Settings, findings *tracker.Tracker, m *metrics.Metrics, log *slog.Logger) (from, error) {
	if o.manifestsDir != "" {
		return o.folder(findings)
	}
	settings, err := o.connect("headgate", o.kubeSettings(objects, o.ownPod(log)), log)
	if err != nil {
		return from{}, err
	}
	o.warnWithoutPod(log)
	cluster := kube.New(settings)
	events := event.New(event.Settings{
		Client: settings.Clients.Objects, UID: cluster.UID, Pod: knownPod(), NoSync: o.disableSyncEvents,
		Written: m.Events, Log: log,
	})
	findings.Notify(events.Findings)
	return from{
		run: controller.MergeSources(cluster.Run, func(ctx context.Context, _ func(context.Context, []source.Change)) error {
			events.Run(ctx)
			return nil
		}),
		want:    controller.Subscriptions{Secrets: cluster.SubscribeSecrets, ConfigMaps: cluster.SubscribeConfigMaps},
		client:  settings.Clients.Objects,
		notices: controller.Notices{Served: events.Taken, Reloaded: events.Reloaded},
	}, nil
}

// kubeSettings are the settings for reading a cluster. pod is that of this process,
// if its zone is needed.
func (o options) kubeSettings(objects store.Settings, pod types.NamespacedName) kube.Settings {
	return kube.Settings{
		Namespace: o.watchNamespace, ConfigMap: objects.ConfigMap,
		Services: []types.NamespacedName{objects.TCPServices, objects.UDPServices}, AnnotationPrefix: o.annotationsPrefix,
		Namespaces: o.watchNamespaceSelector != "", Pod: pod, Status: o.writesStatus(),
	}
}

// connect adds clients of the cluster to settings.
func (o options) connect(agent string, settings kube.Settings, log *slog.Logger) (kube.Settings, error) {
	if err := o.shareLog(log); err != nil {
		return kube.Settings{}, err
	}
	clients, err := kube.Connect(kube.Connection{
		Kubeconfig: o.kubeconfig, Host: o.apiserverHost, CertificateAuthority: o.certificateAuthority,
		QPS: o.kubeAPIQPS, Burst: o.kubeAPIBurst, UserAgent: agent + "/" + version,
	})
	settings.Clients, settings.Log = clients, log
	return settings, err
}

// warnWithoutPod logs that this process, which is in a Pod, does not know which one.
func (o options) warnWithoutPod(log *slog.Logger) {
	if o.kubeconfig == "" && o.apiserverHost == "" && knownPod().Name == "" {
		log.Warn("the environment variables POD_NAME and POD_NAMESPACE with Headgate's Pod are not set",
			"effect", "there are no Events of the Pod, and the leader has a random name")
	}
}

// ownPod is the Pod of this process, if its zone is needed.
func (o options) ownPod(log *slog.Logger) types.NamespacedName {
	if !o.topology {
		return types.NamespacedName{}
	}
	pod := knownPod()
	if pod.Name == "" {
		log.Warn("--enable-topology-aware-routing requires the environment variables POD_NAME and POD_NAMESPACE with Headgate's Pod",
			"effect", "topology hints are ignored")
	}
	return pod
}

func (o options) folder(findings *tracker.Tracker) (from, error) {
	folder, err := file.New(o.manifestsDir, func(problems map[string][]file.Problem) {
		findings.Update(manifestFindings(o.manifestsDir, problems))
	})
	if err != nil {
		return from{}, err
	}
	return from{run: folder.Run, files: holders(o.manifestsDir, folder.Files)}, nil
}

// A manifest is the path of a file or folder, as the owner of findings.
type manifest string

// manifestFindings are the problems of files and folders, with their paths relative
// to the folder of all.
func manifestFindings(all string, problems map[string][]file.Problem) []tracker.Part {
	parts := make([]tracker.Part, 0, len(problems))
	for path, ps := range problems {
		part := tracker.Part{Owner: manifest(path)}
		for _, p := range ps {
			part.Findings = append(part.Findings, manifestFinding(inside(all, path), p))
		}
		parts = append(parts, part)
	}
	return parts
}

// inside is a path as in findings: relative to the folder of all.
func inside(all, path string) string {
	if inside, err := filepath.Rel(all, path); err == nil {
		return inside
	}
	return path
}

// holders returns the files that contain an object, and the folders above them, as
// in findings.
func holders(all string, files func(object string) []string) func(object string) []string {
	return func(object string) []string {
		var names []string
		for _, path := range files(object) {
			for at := inside(all, path); ; at = filepath.Dir(at) {
				names = append(names, "file/"+at)
				if at == filepath.Dir(at) {
					break
				}
			}
		}
		return names
	}
}

func manifestFinding(path string, p file.Problem) finding.Finding {
	if p.Object != "" {
		// Without the line, so that the finding stays the same when the object moves.
		return finding.Finding{
			Object: p.Object, Field: p.Field, Code: finding.OldVersion, Message: path + ": " + p.Reason, Effect: p.Effect,
		}
	}
	f := finding.Finding{Object: "file/" + path, Code: finding.BadManifest, Message: p.Reason, Effect: p.Effect}
	if p.Line > 0 {
		f.Field = fmt.Sprintf("line %d", p.Line)
	}
	return f
}

// listeners are the addresses at which this instance is reached: no tenant's backend
// may be there.
func (o options) listeners() []netip.AddrPort {
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
		for _, p := range o.ports() {
			list = append(list, netip.AddrPortFrom(prefix.Addr().Unmap(), p.port))
		}
	}
	return list
}
