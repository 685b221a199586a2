package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	enrollService = "headgate.edge.v1.Enrollment"
	enrollMethod  = "/" + enrollService + "/Enroll"

	// These are the fields of its messages, all texts.
	tokenField       = "token"
	requestField     = "request"
	certificateField = "certificate"
	bundleField      = "authorities"
)

const (
	// maxToken is the maximum size of a token, in bytes.
	maxToken = 16 << 10
	// maxReviews is how many tokens are reviewed at a time, and maxReviewsOf how many of one address, or of
	// one network of IPv6, are reviewed or next. One that is refused keeps its place for refusalTime, so that
	// guesses do not flood the API server.
	maxReviews   = 4
	maxReviewsOf = 2
	refusalTime  = time.Second
	// reviewTimeout is how long a review may wait and take.
	reviewTimeout = 10 * time.Second
)

// A Refusal is why a token, or an edge, gets no certificate. It is sent to whom it is about.
type Refusal struct{ Reason string }

func (r Refusal) Error() string { return r.Reason }

// An enroller gives certificates to edges: for a token, or for a certificate that is still valid.
type enroller struct {
	ServerSettings
	validity time.Duration
	reviews  *semaphore.Weighted
	shares   shares[place]
	// refusal is refusalTime; another one in tests.
	refusal time.Duration
}

func newEnroller(s ServerSettings, validity time.Duration) *enroller {
	return &enroller{ServerSettings: s, validity: validity, reviews: semaphore.NewWeighted(maxReviews), refusal: refusalTime}
}

// enrollment describes the service, as protoc would.
func enrollment() *grpc.ServiceDesc {
	handle := func(service any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		message := &structpb.Struct{}
		if err := decode(message); err != nil {
			return nil, err
		}
		enroll := func(ctx context.Context, message any) (any, error) {
			return service.(*enroller).enroll(ctx, message.(*structpb.Struct))
		}
		if intercept == nil {
			return enroll(ctx, message)
		}
		return intercept(ctx, message, &grpc.UnaryServerInfo{Server: service, FullMethod: enrollMethod}, enroll)
	}
	return &grpc.ServiceDesc{ServiceName: enrollService, HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Enroll", Handler: handle}}}
}

func (e *enroller) enroll(ctx context.Context, message *structpb.Struct) (*structpb.Struct, error) {
	token := message.GetFields()[tokenField].GetStringValue()
	request, err := parseRequest([]byte(message.GetFields()[requestField].GetStringValue()))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if _, err := requested(request); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	trust, err := e.Source()
	if err != nil {
		return nil, status.Error(codes.Unavailable, "the control has no authority yet")
	}
	if trust.Signer == nil {
		return nil, status.Error(codes.FailedPrecondition, "the control signs no certificates, as it has --edge-certificate: the edge needs --control-certificate")
	}
	i, err := e.identify(ctx, token)
	if err != nil {
		return nil, err
	}
	signed, err := trust.Signer.Edge(request, i, time.Now(), e.validity)
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	e.Log.Info("an edge gets a certificate", "edge", i.Name, "group", i.Group, "account", i.Account, "serial", signed.SerialNumber.Text(16), "until", signed.NotAfter, "renewal", token == "")
	return structpb.NewStruct(map[string]any{certificateField: string(EncodeCertificates(signed)), bundleField: string(trust.Bundle)})
}

// identify says who asks: by a token, or by the certificate of the connection. Nothing that is in the
// message changes the identity in that.
func (e *enroller) identify(ctx context.Context, token string) (Identity, error) {
	if token != "" {
		return e.review(ctx, token)
	}
	i, _, err := verified(ctx, e.Source)
	if err != nil {
		return Identity{}, status.Error(codes.Unauthenticated, "there is no token, and "+err.Error())
	}
	if e.Renew == nil {
		return i, nil
	}
	if err := e.Renew(i); err != nil {
		return Identity{}, e.refused(err, token)
	}
	return i, nil
}

func (e *enroller) review(ctx context.Context, token string) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, status.Errorf(codes.InvalidArgument, "the token has more than %d bytes", maxToken)
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var from place
	if p, ok := peer.FromContext(ctx); ok {
		from = placeOf(p.Addr)
	}
	if err := e.shares.take(ctx, from, maxReviewsOf); err != nil {
		return Identity{}, status.Error(codes.ResourceExhausted, "too many tokens of this address are reviewed at once")
	}
	if err := e.reviews.Acquire(ctx, 1); err != nil {
		e.shares.release(from)
		return Identity{}, status.Error(codes.ResourceExhausted, "too many tokens are reviewed at once")
	}
	done := func() {
		e.reviews.Release(1)
		e.shares.release(from)
	}
	i, err := e.Review(ctx, token)
	if err == nil {
		err = i.Validate()
	}
	if err != nil {
		time.AfterFunc(e.refusal, done)
		return Identity{}, e.refused(err, token)
	}
	done()
	return i, nil
}

// refused is what an edge gets to know of why it has no certificate.
func (e *enroller) refused(err error, token string) error {
	text := err.Error()
	if token != "" {
		text = strings.ReplaceAll(text, token, "…")
	}
	if _, ok := errors.AsType[Refusal](err); ok {
		e.Log.Warn("an edge gets no certificate", "reason", text)
		return status.Error(codes.PermissionDenied, text)
	}
	e.Log.Error("cannot review the token of an edge", "error", text, "effect", "it gets no certificate")
	return status.Error(codes.Unavailable, "the control can't review the token: its log says why")
}

// enroll asks for a certificate over a connection.
func enroll(ctx context.Context, over grpc.ClientConnInterface, token string, request []byte) (certificate, bundle []byte, err error) {
	message, err := structpb.NewStruct(map[string]any{tokenField: token, requestField: string(request)})
	if err != nil {
		return nil, nil, fmt.Errorf("write the request for a certificate: %w", err)
	}
	answer := &structpb.Struct{}
	if err := over.Invoke(ctx, enrollMethod, message, answer, grpc.MaxCallRecvMsgSize(maxEnroll)); err != nil {
		return nil, nil, err
	}
	return []byte(answer.GetFields()[certificateField].GetStringValue()), []byte(answer.GetFields()[bundleField].GetStringValue()), nil
}
