package interop_test

import (
	"context"
	"crypto/tls"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/interop"
	"google.golang.org/grpc/interop/grpc_testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// The variables of the process of a case.
const (
	caseVariable    = "HEADGATE_INTEROP_CASE"
	addressVariable = "HEADGATE_INTEROP_ADDRESS"
	hostVariable    = "HEADGATE_INTEROP_HOST"
)

// A doing is one case of grpc-go's interoperation tests.
type doing func(context.Context, *grpc.ClientConn, grpc_testing.TestServiceClient)

func plain(do func(context.Context, grpc_testing.TestServiceClient, ...grpc.CallOption)) doing {
	return func(ctx context.Context, _ *grpc.ClientConn, client grpc_testing.TestServiceClient) { do(ctx, client) }
}

func compressed(do func(context.Context, grpc_testing.TestServiceClient, ...grpc.CallOption)) doing {
	return func(ctx context.Context, _ *grpc.ClientConn, client grpc_testing.TestServiceClient) {
		do(ctx, client, grpc.UseCompressor(gzip.Name))
	}
}

// orcaCase has a balancer of its own in the client.
const orcaCase = "orca_per_rpc"

// cases are those of the specification that grpc-go has, without those that need accounts of
// Google, those of balancers of clients (pick_first_unary), and orca_oob, for which the server
// must report more often than it may.
func cases() map[string]doing {
	return map[string]doing{
		"empty_unary":                 plain(interop.DoEmptyUnaryCall),
		"large_unary":                 plain(interop.DoLargeUnaryCall),
		"client_streaming":            plain(interop.DoClientStreaming),
		"server_streaming":            plain(interop.DoServerStreaming),
		"ping_pong":                   plain(interop.DoPingPong),
		"empty_stream":                plain(interop.DoEmptyStream),
		"timeout_on_sleeping_server":  plain(interop.DoTimeoutOnSleepingServer),
		"cancel_after_begin":          plain(interop.DoCancelAfterBegin),
		"cancel_after_first_response": plain(interop.DoCancelAfterFirstResponse),
		"status_code_and_message":     plain(interop.DoStatusCodeAndMessage),
		"special_status_message":      plain(interop.DoSpecialStatusMessage),
		"custom_metadata":             plain(interop.DoCustomMetadata),
		"unimplemented_method": func(ctx context.Context, c *grpc.ClientConn, _ grpc_testing.TestServiceClient) {
			interop.DoUnimplementedMethod(ctx, c)
		},
		"unimplemented_service": func(ctx context.Context, c *grpc.ClientConn, _ grpc_testing.TestServiceClient) {
			interop.DoUnimplementedService(ctx, grpc_testing.NewUnimplementedServiceClient(c))
		},
		orcaCase: func(ctx context.Context, _ *grpc.ClientConn, client grpc_testing.TestServiceClient) {
			interop.DoORCAPerRPCTest(ctx, client)
		},
		"compressed_large_unary":      compressed(interop.DoLargeUnaryCall),
		"compressed_client_streaming": compressed(interop.DoClientStreaming),
		"compressed_server_streaming": compressed(interop.DoServerStreaming),
		"compressed_ping_pong":        compressed(interop.DoPingPong),
		"compressed_custom_metadata":  compressed(interop.DoCustomMetadata),
	}
}

// runCase is the client: a case that fails ends the process with an error.
func runCase(name, address, host string) {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(os.Stderr, os.Stderr, os.Stderr))
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	var options []grpc.DialOption
	if name == orcaCase {
		options = append(options, grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"test_backend_metrics_load_balancer": {}}]}`))
	}
	connection, err := dial(address, host, options...)
	if err != nil {
		grpclog.Fatal(err)
	}
	defer connection.Close()
	cases()[name](ctx, connection, grpc_testing.NewTestServiceClient(connection))
}

// dial makes a client by TLS of a host at an address.
func dial(address, host string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	// The certificate is the tests' own.
	secure := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, ServerName: host})
	return grpc.NewClient("passthrough:///"+address, append(more, grpc.WithTransportCredentials(secure), grpc.WithAuthority(host))...)
}

// TestGRPC runs the cases of grpc-go's client against its server, through Headgate.
func TestGRPC(t *testing.T) {
	t.Parallel()
	cleartext, secure := startGRPC(t, false, nil), startGRPC(t, true, nil)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("grpc", headgatetest.Service("grpc"), cleartext, "backend-protocol: GRPC") +
		served("grpcs", headgatetest.Service("grpcs"), secure, "backend-protocol: GRPCS") +
		served("h2c", speaking("h2c", "kubernetes.io/h2c"), cleartext)})
	for _, host := range []string{"grpc", "grpcs", "h2c"} {
		for _, name := range slices.Sorted(maps.Keys(cases())) {
			t.Run(host+"/"+name, func(t *testing.T) {
				t.Parallel()
				client := exec.CommandContext(t.Context(), os.Args[0])
				client.Env = append(os.Environ(), caseVariable+"="+name, addressVariable+"="+headgatetest.Address(g.HTTPS), hostVariable+"="+host+".test")
				if output, err := client.CombinedOutput(); err != nil {
					t.Errorf("%v:\n%s", err, output)
				}
			})
		}
	}
}
