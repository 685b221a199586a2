package main

import (
	"log/slog"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/source/kube"
)

// A from is where objects come from.
type from struct {
	run controller.Source
	// want is nil where all Secrets are delivered.
	want controller.Want
	// classless: Ingresses may do without an IngressClass.
	classless bool
	// configMap holds the options, defaultBackend answers what no rule does;
	// without a name there is none.
	configMap, defaultBackend types.NamespacedName
}

// source is the folder, if one is named, and else the cluster.
func (o options) source(log *slog.Logger) (from, error) {
	configMap, err := objectName("configmap", o.configMap)
	if err != nil {
		return from{}, err
	}
	defaultBackend, err := objectName("default-backend-service", o.defaultBackend)
	if err != nil {
		return from{}, err
	}
	f, err := o.sourceOf(configMap, log)
	f.configMap, f.defaultBackend = configMap, defaultBackend
	return f, err
}

func (o options) sourceOf(configMap types.NamespacedName, log *slog.Logger) (from, error) {
	if o.manifestsDir != "" {
		return o.folder(log)
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
		Clients: clients, Namespace: o.watchNamespace, ConfigMap: configMap, AnnotationPrefix: o.annotationsPrefix, Log: log,
	})
	return from{run: cluster.Run, want: cluster.Want}, nil
}

func (o options) folder(log *slog.Logger) (from, error) {
	folder, err := file.New(o.manifestsDir, func(p file.Problem) {
		if p.Solved {
			log.Info("manifests: " + p.String())
		} else {
			log.Error("manifests: "+p.String(), "effect", "what was read there before stays")
		}
	})
	if err != nil {
		return from{}, err
	}
	return from{run: folder.Run, classless: true}, nil
}
