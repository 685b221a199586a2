package interop_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/orca"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// startGRPC runs grpc-go's server of the cases, or another one, until the test ends.
func startGRPC(t *testing.T, secure bool, service grpc_testing.TestServiceServer) string {
	t.Helper()
	options := []grpc.ServerOption{orca.CallMetricsServerOption(nil)}
	if secure {
		pair := headgatetest.NewKeyPair(t, "backend", "backend.test")
		own, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&own)))
	}
	if service == nil {
		service = interop.NewTestServer()
	}
	server := grpc.NewServer(options...)
	grpc_testing.RegisterTestServiceServer(server, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// speaking is a Service whose port has an application protocol.
func speaking(name, appProtocol string) string {
	return strings.Replace(headgatetest.Service(name), "port: 80}", "port: 80, appProtocol: "+appProtocol+"}", 1)
}
