package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/link"
)

// validity is that of all certificates of controls and edges.
const validity = 12 * time.Hour

// An edgePlace is where a control runs, with all that edges need to connect.
type edgePlace struct {
	place
	stage *stage
	// control is the address for edges.
	control   string
	authority *link.Authority
	ingresses int
	// moved is how often a Service got other endpoints.
	moved int
}

// placeControl writes a folder of Ingresses, of which one of certificateEvery has a certificate, and the files of a control.
func (s *stage) placeControl(ingresses, certificateEvery int) (*edgePlace, error) {
	at, err := s.place("control")
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	p := &edgePlace{place: at, stage: s, control: local(ports[0]), ingresses: ingresses}
	if p.authority, err = link.NewAuthority(time.Now().Add(-time.Hour), time.Now().Add(validity)); err != nil {
		return nil, err
	}
	own, err := p.authority.Server(time.Now(), validity)
	if err != nil {
		return nil, err
	}
	if err := p.writePair("control", *own); err != nil {
		return nil, err
	}
	if err := os.WriteFile(p.file("ca.crt"), link.EncodeCertificates(p.authority.Certificate), 0o600); err != nil {
		return nil, err
	}
	return p, p.writeFolder(certificateEvery)
}

func (p *edgePlace) file(name string) string { return filepath.Join(p.stage.dir, name) }

// writePair writes a certificate and its key.
func (p *edgePlace) writePair(name string, pair tls.Certificate) error {
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.file(name+".crt"), link.EncodeCertificates(pair.Leaf), 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)
}

// issue makes the certificate of an edge.
func (p *edgePlace) issue(name string) (pair tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return pair, err
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return pair, err
	}
	leaf, err := p.authority.Edge(request, link.Identity{Name: name}, time.Now(), validity)
	if err != nil {
		return pair, err
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// writeFolder writes the Ingresses, each with a Service of its own, and its endpoints.
func (p *edgePlace) writeFolder(certificateEvery int) error {
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		return err
	}
	if err := p.write("options", configMap(false, `ssl-redirect: "false"`)); err != nil {
		return err
	}
	for i := range p.ingresses {
		text := serviceOf(i)
		secret := ""
		if i%certificateEvery == 0 {
			secret = serviceName(i)
			pair, err := newCertificate(hostName(i))
			if err != nil {
				return err
			}
			text += secretText(secret, pair)
		}
		if err := p.write(fmt.Sprintf("i-%05d", i), text+ingressOf(fmt.Sprintf("i-%05d", i), hostName(i), i, secret)); err != nil {
			return err
		}
		if err := p.moveEndpoints(i, i); err != nil {
			return err
		}
	}
	return nil
}

// write replaces a file of the folder at once.
func (p *edgePlace) write(name, text string) error {
	waiting := filepath.Join(p.folder, name+".new")
	if err := os.WriteFile(waiting, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the manifests: %w", err)
	}
	return os.Rename(waiting, filepath.Join(p.folder, name+".yaml"))
}

// moveEndpoints gives the i-th Service endpoints: so many, from the first address on.
func (p *edgePlace) moveEndpoints(i, first int) error {
	text := fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s, namespace: %[2]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{port: 9}]
endpoints:
`, serviceName(i), namespace)
	for k := range endpointsEach {
		text += fmt.Sprintf("  - addresses: [%s]\n", silent(first*endpointsEach+k))
	}
	return p.write(fmt.Sprintf("e-%05d", i), text)
}

// silent is the i-th address of this machine's own at which nothing listens.
func silent(i int) string { return fmt.Sprintf("127.%d.%d.%d", 100+(i+1)>>16, (i+1)>>8&255, (i+1)&255) }

// backendOf is the unit of the i-th Service.
func backendOf(i int) unit.Key { return unit.Backend.Key(namespace + "/" + serviceName(i) + "/80") }

func serviceOf(i int) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: %s}\nspec:\n  ports: [{port: 80}]\n---\n", serviceName(i), namespace)
}

func secretText(name string, pair keyPair) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: %s, namespace: %s}\ndata: {tls.crt: %s, tls.key: %s}\n---\n",
		name, namespace, base64.StdEncoding.EncodeToString(pair.chain), base64.StdEncoding.EncodeToString(pair.key))
}

// ingressOf serves a host by the i-th Service.
func ingressOf(name, host string, i int, secret string) string {
	text := fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: %s, namespace: %s}
spec:
  rules:
    - host: %s
      http:
        paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: %s, port: {number: 80}}}
`, name, namespace, host, serviceName(i))
	if secret != "" {
		text += fmt.Sprintf("  tls: [{hosts: [%s], secretName: %s}]\n", host, secret)
	}
	return text
}

// startControl starts it, and waits until it is ready.
func (p *edgePlace) startControl(ctx context.Context) (*headgate, error) {
	return begin(ctx, p.place, loopback, func(args ...string) (*process, error) {
		return p.stage.start(p.name, p.stage.headgate, slices.Concat([]string{"control"}, args, []string{
			"--manifests-dir", p.folder, "--edge-address", p.control,
			"--edge-certificate", p.file("control.crt"), "--edge-key", p.file("control.key"), "--edge-ca", p.file("ca.crt"),
		}, p.stage.arguments)...)
	})
}

// edgeArguments are those of a real edge.
func (p *edgePlace) edgeArguments(args, further []string) []string {
	return slices.Concat([]string{"edge"}, args, []string{
		"--control-address", p.control, "--control-ca", p.file("ca.crt"),
		"--control-certificate", p.file("edge.crt"), "--control-key", p.file("edge.key"),
	}, further, p.stage.arguments)
}

// remove removes a file of the folder.
func (p *edgePlace) remove(name string) error {
	return os.Remove(filepath.Join(p.folder, name+".yaml"))
}
