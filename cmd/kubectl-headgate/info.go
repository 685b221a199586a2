package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// info is what is shown of the Service of the controller.
type info struct {
	Namespace    string   `json:"namespace"`
	Service      string   `json:"service"`
	Type         string   `json:"type"`
	ClusterIPs   []string `json:"clusterIPs"`
	LoadBalancer []string `json:"loadBalancer"`
	ExternalIPs  []string `json:"externalIPs,omitempty"`
	Ports        []string `json:"ports"`
}

func (p *plugin) infoCommand() *cobra.Command {
	var (
		out  format
		name string
	)
	command := &cobra.Command{
		Use:   "info",
		Short: "Show the addresses of the controller's Service",
		Long:  "Show the addresses of the controller's Service: in the cluster, and those of its load balancer.",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			names := p.controllers
			if name != "" {
				names = []string{name}
			}
			i, err := p.info(command.Context(), names)
			if err != nil {
				return err
			}
			if out != "" {
				return out.write(p.Out, i)
			}
			return p.printInfo(i)
		},
	}
	command.Flags().StringVar(&name, "service", "", "Name of the Service. By default the first one that exists: "+strings.Join(p.controllers, ", "))
	out.addFlag(command)
	complete(command, "service", p.completeServices)
	return command
}

// info returns the first of the Services that exists.
func (p *plugin) info(ctx context.Context, names []string) (info, error) {
	s, err := p.connect()
	if err != nil {
		return info{}, err
	}
	for _, name := range names {
		service, err := s.client.CoreV1().Services(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return info{}, err
		}
		return infoOf(service), nil
	}
	return info{}, fmt.Errorf("there is no Service %s in namespace %s: name the namespace (-n) or the Service (--service)",
		strings.Join(names, " or "), s.namespace)
}

func infoOf(s *corev1.Service) info {
	i := info{
		Namespace: s.Namespace, Service: s.Name, Type: string(s.Spec.Type), ClusterIPs: s.Spec.ClusterIPs,
		LoadBalancer: []string{}, ExternalIPs: s.Spec.ExternalIPs, Ports: []string{},
	}
	if len(i.ClusterIPs) == 0 {
		i.ClusterIPs = []string{s.Spec.ClusterIP}
	}
	for _, at := range s.Status.LoadBalancer.Ingress {
		i.LoadBalancer = append(i.LoadBalancer, at.IP+at.Hostname)
	}
	for _, port := range s.Spec.Ports {
		text := fmt.Sprintf("%d/%s", port.Port, port.Protocol)
		if port.NodePort != 0 {
			text = fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		if port.Name != "" {
			text = port.Name + " " + text
		}
		i.Ports = append(i.Ports, text)
	}
	return i
}

func (p *plugin) printInfo(i info) error {
	w := printers.GetNewTabWriter(p.Out)
	line := func(name string, values ...string) {
		// An error comes with Flush.
		_, _ = fmt.Fprintf(w, "%s:\t%s\n", name, orNone(strings.Join(values, ", ")))
	}
	line("Service", i.Namespace+"/"+i.Service)
	line("Type", i.Type)
	line("Cluster IP", i.ClusterIPs...)
	line("Load balancer", i.LoadBalancer...)
	if len(i.ExternalIPs) > 0 {
		line("External IPs", i.ExternalIPs...)
	}
	line("Ports", i.Ports...)
	return w.Flush()
}

// orNone is how kubectl shows an empty value.
func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
