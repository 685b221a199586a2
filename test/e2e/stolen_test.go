package e2e_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/xds"
	"github.com/headgate/headgate/test/e2e/clustertest"
)

// A stolen is a connection to the control with the certificate of an edge, by the token that a shell in it can read.
type stolen struct {
	*broken
	connection *grpc.ClientConn
}

// steal gets a certificate with the files of an edge.
func (b *broken) steal(from group) *stolen {
	b.t.Helper()
	files := map[string]string{}
	for _, name := range []string{"token", "ca.crt"} {
		files[name] = filepath.Join(b.t.TempDir(), name)
		if err := os.WriteFile(files[name], []byte(b.shell(from.edge)("cat /etc/headgate/control/"+name)), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	client, err := link.NewClient(link.ClientSettings{
		Address: b.forward(net.JoinHostPort(b.control.Status.PodIP, strconv.Itoa(controlPort))), CAFile: files["ca.crt"], TokenFile: files["token"],
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client.Run(ctx)
	}()
	b.t.Cleanup(func() {
		cancel()
		<-ended
		client.Close()
	})
	clustertest.Eventually(b.t, timeout, func(context.Context) error { return client.Err() })
	return &stolen{b, client.Connection()}
}

// forward returns an address of the test's own network that leads to one of the cluster's.
func (b *broken) forward(to string) string {
	b.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := b.cluster.Dial(context.Background(), "tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					// One end closes both.
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}

// wantOnlyStreams checks that nothing else is served to an edge than the two streams and Enroll.
func (s *stolen) wantOnlyStreams() {
	s.t.Helper()
	for _, method := range []string{
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.health.v1.Health/Check", "/grpc.channelz.v1.Channelz/GetServers",
		"/envoy.service.secret.v3.SecretDiscoveryService/FetchSecrets", "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus",
		"/headgate.edge.v1.Enrollment/Sign", "/headgate.edge.v1.Reports/List",
	} {
		if err := s.connection.Invoke(s.t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{}); grpcstatus.Code(err) != codes.Unimplemented {
			s.t.Errorf("%s: %v", method, err)
		}
	}
	whole, err := discovery.NewAggregatedDiscoveryServiceClient(s.connection).StreamAggregatedResources(s.t.Context())
	if err == nil {
		_, err = whole.Recv()
	}
	if grpcstatus.Code(err) != codes.Unimplemented {
		s.t.Errorf("the stream of whole states: %v", err)
	}
}

// wantUnits follows the control as an attacker would, who says to be another edge and to have had units of the other
// group: nothing of that group may come.
func (s *stolen) wantUnits(own, other group) {
	s.t.Helper()
	got := errors.New("enough")
	for _, held := range []map[unit.Key]string{nil, {unit.Host.Key(other.host): "0", unit.Name.Key(other.host): "0"}} {
		ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
		var text []byte
		_ = xds.Follow(ctx, s.connection, other.edge.Name, held, func(_ context.Context, cut publish.Cut) error {
			for _, r := range cut.Resources {
				text = append(append(text, r.Name...), r.Bytes...)
			}
			if len(cut.Resources) > 0 {
				cancel()
			}
			return got
		})
		cancel()
		if !own.in(text) {
			s.t.Error("the key of its own group does not come: the search is of no use")
		}
		for what, is := range map[string]bool{
			"the key": other.in(text), "the host": strings.Contains(string(text), other.host), "the namespace": strings.Contains(string(text), other.headgate.class+"/"),
		} {
			if is {
				s.t.Errorf("%s of another group comes", what)
			}
		}
	}
}
