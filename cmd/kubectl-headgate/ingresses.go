package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An ingressPath is a path of an Ingress, or its default backend.
type ingressPath struct {
	Namespace string   `json:"namespace"`
	Ingress   string   `json:"ingress"`
	Host      string   `json:"host"`
	Path      string   `json:"path"`
	Addresses []string `json:"addresses"`
	TLS       bool     `json:"tls"`
	Service   string   `json:"service"`
	Port      string   `json:"servicePort"`
	Endpoints int      `json:"endpoints"`
}

func (p *plugin) ingressesCommand() *cobra.Command {
	var (
		out  format
		host string
		all  bool
	)
	command := &cobra.Command{
		Use:     "ingresses",
		Aliases: []string{"ingress", "ing"},
		Short:   "List the paths of Ingresses with their endpoints",
		Long: "List the paths of Ingresses, with their Services and the number of endpoints that are ready.\n\n" +
			"The Ingresses are those of the API server, of all classes. What is served of them is shown by explain and findings.",
		Example: p.examples("Those of the namespace", "ingresses", "Those of a host, in all namespaces", "ingresses -A --host shop.example.com"),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			paths, err := p.ingressPaths(command.Context(), all, host)
			if err != nil {
				return err
			}
			if out != "" {
				return out.write(p.Out, map[string][]ingressPath{"ingresses": paths})
			}
			return p.printIngressPaths(paths, all)
		},
	}
	command.Flags().StringVar(&host, "host", "", "Host name: list only its paths")
	addAllNamespacesFlag(command, &all)
	out.addFlag(command)
	complete(command, "host", p.completeHosts)
	return command
}

func addAllNamespacesFlag(command *cobra.Command, all *bool) {
	command.Flags().BoolVarP(all, "all-namespaces", "A", false, "All namespaces, instead of that of -n or of the current context")
}

func (p *plugin) ingressPaths(ctx context.Context, all bool, host string) ([]ingressPath, error) {
	s, err := p.connect()
	if err != nil {
		return nil, err
	}
	if all {
		s.namespace = metav1.NamespaceAll
	}
	ingresses, err := s.client.NetworkingV1().Ingresses(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	services, err := s.services(ctx)
	if err != nil {
		return nil, err
	}
	paths := []ingressPath{}
	for i := range ingresses.Items {
		for _, path := range pathsOf(&ingresses.Items[i], services) {
			if host == "" || path.Host == host {
				paths = append(paths, path)
			}
		}
	}
	return paths, nil
}

// pathsOf lists the paths of an Ingress in their order, the default backend last.
func pathsOf(ing *networkingv1.Ingress, services services) []ingressPath {
	one := func(host, path string, backend *networkingv1.IngressBackend) ingressPath {
		row := ingressPath{Namespace: ing.Namespace, Ingress: ing.Name, Host: host, Path: path, Addresses: []string{}, TLS: hasTLS(ing, host)}
		for _, at := range ing.Status.LoadBalancer.Ingress {
			row.Addresses = append(row.Addresses, at.IP+at.Hostname)
		}
		if s := backend.Service; s != nil {
			row.Service, row.Port = s.Name, portText(s.Port)
			row.Endpoints = services.ready(ing.Namespace, s.Name, s.Port)
		}
		return row
	}
	var paths []ingressPath
	for _, rule := range ing.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			paths = append(paths, one(rule.Host, rule.HTTP.Paths[i].Path, &rule.HTTP.Paths[i].Backend))
		}
	}
	if ing.Spec.DefaultBackend != nil {
		paths = append(paths, one("", "", ing.Spec.DefaultBackend))
	}
	return paths
}

// hasTLS reports whether the Ingress names a host in its TLS section.
func hasTLS(ing *networkingv1.Ingress, host string) bool {
	for _, section := range ing.Spec.TLS {
		if len(section.Hosts) == 0 {
			return true
		}
		for _, name := range section.Hosts {
			if name == host {
				return true
			}
			// A wildcard stands for one label.
			if above, ok := strings.CutPrefix(name, "*."); ok {
				if _, rest, _ := strings.Cut(host, "."); rest == above {
					return true
				}
			}
		}
	}
	return false
}

func portText(port networkingv1.ServiceBackendPort) string {
	if port.Name != "" {
		return port.Name
	}
	return strconv.Itoa(int(port.Number))
}

func (p *plugin) printIngressPaths(paths []ingressPath, all bool) error {
	if len(paths) == 0 {
		fmt.Fprintln(p.ErrOut, "No resources found")
		return nil
	}
	rows := table{{"NAMESPACE", "INGRESS NAME", "HOST+PATH", "ADDRESSES", "TLS", "SERVICE", "SERVICE PORT", "ENDPOINTS"}}
	for _, path := range paths {
		host, secure := path.Host, "NO"
		if host == "" {
			host = "*"
		}
		if path.TLS {
			secure = "YES"
		}
		rows = append(rows, []string{
			path.Namespace, path.Ingress, host + path.Path, strings.Join(path.Addresses, ","), secure,
			orNone(path.Service), orNone(path.Port), strconv.Itoa(path.Endpoints),
		})
	}
	if !all {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	return rows.write(p.Out)
}

// services are the Services and EndpointSlices of the namespaces that are shown, by
// NAMESPACE/NAME of the Service.
type services struct {
	services map[string]*corev1.Service
	slices   map[string][]discoveryv1.EndpointSlice
}

func (s session) services(ctx context.Context) (services, error) {
	found := services{map[string]*corev1.Service{}, map[string][]discoveryv1.EndpointSlice{}}
	list, err := s.client.CoreV1().Services(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return services{}, err
	}
	for i := range list.Items {
		found.services[list.Items[i].Namespace+"/"+list.Items[i].Name] = &list.Items[i]
	}
	endpoints, err := s.client.DiscoveryV1().EndpointSlices(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return services{}, err
	}
	for _, slice := range endpoints.Items {
		key := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
		found.slices[key] = append(found.slices[key], slice)
	}
	return found, nil
}

// ready counts the addresses of a Service's port that are ready.
func (s services) ready(namespace, name string, wanted networkingv1.ServiceBackendPort) int {
	key := namespace + "/" + name
	service := s.services[key]
	if service == nil {
		return 0
	}
	addresses := map[string]bool{}
	for _, port := range service.Spec.Ports {
		if port.Name != wanted.Name && wanted.Name != "" || wanted.Name == "" && port.Port != wanted.Number {
			continue
		}
		for _, slice := range s.slices[key] {
			if !hasPort(slice, port.Name) {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				if (endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready) && len(endpoint.Addresses) > 0 {
					addresses[endpoint.Addresses[0]] = true
				}
			}
		}
	}
	return len(addresses)
}

func hasPort(slice discoveryv1.EndpointSlice, name string) bool {
	for _, port := range slice.Ports {
		if port.Name == nil && name == "" || port.Name != nil && *port.Name == name {
			return true
		}
	}
	return false
}
