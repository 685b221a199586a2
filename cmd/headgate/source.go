package main

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/ledger"
	"github.com/headgate/headgate/internal/source/dns"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/source/kube"
)

// A from is where objects come from.
type from struct {
	run  controller.Source
	want controller.Wants
	// classless: Ingresses may do without an IngressClass.
	classless bool
	// configMap holds the options, defaultBackend answers what no rule does;
	// without a name there is none.
	configMap, defaultBackend types.NamespacedName
	// namespaces selects those to serve; nil for all.
	namespaces labels.Selector
}

// source is the folder, if one is named, and else the cluster.
func (o options) source(findings *ledger.Ledger, log *slog.Logger) (from, error) {
	configMap, err := objectName("configmap", o.configMap)
	if err != nil {
		return from{}, err
	}
	defaultBackend, err := objectName("default-backend-service", o.defaultBackend)
	if err != nil {
		return from{}, err
	}
	f, err := o.sourceOf(configMap, findings, log)
	if err != nil {
		return from{}, err
	}
	names := dns.New(dns.System(o.localExternalNames, log))
	f.run, f.want.Addresses = controller.Together(f.run, names.Run), names.Want
	f.configMap, f.defaultBackend = configMap, defaultBackend
	if o.watchNamespaceSelector != "" {
		if f.namespaces, err = labels.Parse(o.watchNamespaceSelector); err != nil {
			return from{}, fmt.Errorf("--watch-namespace-selector: %w", err)
		}
	}
	return f, nil
}

func (o options) sourceOf(configMap types.NamespacedName, findings *ledger.Ledger, log *slog.Logger) (from, error) {
	if o.manifestsDir != "" {
		return o.folder(findings)
	}
	klog.SetSlogLogger(log)
	clients, err := kube.Connect(kube.Connection{
		Kubeconfig: o.kubeconfig, Host: o.apiserverHost, CertificateAuthority: o.certificateAuthority,
		QPS: o.kubeAPIQPS, Burst: o.kubeAPIBurst, UserAgent: "headgate/" + version,
	})
	if err != nil {
		return from{}, err
	}
	cluster := kube.New(kube.Settings{
		Clients: clients, Namespace: o.watchNamespace, ConfigMap: configMap, AnnotationPrefix: o.annotationsPrefix,
		Namespaces: o.watchNamespaceSelector != "", Pod: o.ownPod(log), Log: log,
	})
	return from{run: cluster.Run, want: controller.Wants{Secrets: cluster.Want}}, nil
}

func (o options) folder(findings *ledger.Ledger) (from, error) {
	folder, err := file.New(o.manifestsDir, func(problems map[string][]file.Problem) {
		findings.Enter(manifestFindings(o.manifestsDir, problems))
	})
	if err != nil {
		return from{}, err
	}
	return from{run: folder.Run, classless: true}, nil
}

// A manifest is the path of a file or folder, as the owner of findings.
type manifest string

// manifestFindings are the problems of files and folders, with their paths in
// the folder of all.
func manifestFindings(all string, problems map[string][]file.Problem) []ledger.Part {
	parts := make([]ledger.Part, 0, len(problems))
	for path, ps := range problems {
		part := ledger.Part{Owner: manifest(path)}
		if inside, err := filepath.Rel(all, path); err == nil {
			path = inside
		}
		for _, p := range ps {
			part.Findings = append(part.Findings, manifestFinding(path, p))
		}
		parts = append(parts, part)
	}
	return parts
}

func manifestFinding(path string, p file.Problem) finding.Finding {
	if p.Object != "" {
		// Without the line: the finding stays what it is when the object moves.
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
