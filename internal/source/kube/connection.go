package kube

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/headgate/headgate/internal/cluster/client"
)

// A Connection has the settings of the connection to the API server.
type Connection struct {
	// Kubeconfig is the path of a kubeconfig file. Without it and without
	// Host, the configuration is that of the pod.
	Kubeconfig string
	// Host is the API server's URL; it overrides that of the kubeconfig.
	Host string
	// CertificateAuthority is the path of the PEM certificates that the API
	// server named by Host is checked with.
	CertificateAuthority string
	// QPS and Burst bound the requests per second.
	QPS   float32
	Burst int
	// UserAgent names the client to the API server.
	UserAgent string
}

// Clients talk to one API server over one connection.
type Clients struct {
	Objects  *client.Clients
	Metadata metadata.Interface
	// Dynamic is for objects whose types are in no library that Headgate uses.
	Dynamic dynamic.Interface
}

// dialTimeout bounds how long an API server that drops packets delays the next
// try.
const dialTimeout = 5 * time.Second

// Connect makes clients. It sends no requests, so it fails only for invalid
// settings.
func Connect(c Connection) (Clients, error) {
	clients, err := c.connect()
	if err != nil {
		return Clients{}, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return clients, nil
}

func (c Connection) connect() (clients Clients, err error) {
	config, err := c.place()
	if err != nil {
		return Clients{}, err
	}
	config.QPS, config.Burst, config.UserAgent = c.QPS, c.Burst, c.UserAgent
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onceOnly{next} })
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	over, err := rest.HTTPClientFor(config)
	if err != nil {
		return Clients{}, err
	}
	if clients.Objects, err = client.New(config, over); err != nil {
		return Clients{}, err
	}
	if clients.Dynamic, err = dynamic.NewForConfigAndClient(config, over); err != nil {
		return Clients{}, err
	}
	clients.Metadata, err = metadata.NewForConfigAndClient(config, over)
	return clients, err
}

// place returns the address of the API server and the credentials.
func (c Connection) place() (*rest.Config, error) {
	if c.CertificateAuthority != "" && c.Host == "" {
		return nil, errors.New("a certificate authority requires the API server's URL, which is not set")
	}
	if c.Kubeconfig == "" && c.Host == "" {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("not running in a Pod, and neither a kubeconfig file nor the API server's URL is set")
		}
		return config, err
	}
	config, err := clientcmd.BuildConfigFromFlags(c.Host, c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if c.CertificateAuthority != "" {
		pem, err := os.ReadFile(c.CertificateAuthority)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authority: %w", err)
		}
		config.TLSClientConfig.CAFile, config.TLSClientConfig.CAData = "", pem
		config.TLSClientConfig.Insecure = false
	}
	return config, nil
}

// onceOnly keeps client-go from repeating a request: after a timeout of the
// connection it does so ten times before it returns an error, which takes minutes
// if the API server hangs.
type onceOnly struct{ next http.RoundTripper }

func (o onceOnly) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil && request.Context().Err() == nil {
		err = unreachable{err.Error()}
	}
	return response, err
}
