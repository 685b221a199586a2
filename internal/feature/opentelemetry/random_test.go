package opentelemetry_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Random traceparents are read as OpenTelemetry's own library reads them, and none gets to the backend as it
// came.
func TestRandomTraceparents(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := start(t, "", "otel-max-queuesize: 1")
	client := g.NewClient(false)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const asked = 3000
	valid, invalid := 0, 0
	for range asked {
		sent := mutated(random)
		r, err := g.Try(client, headgatetest.Request{Host: "a.test", Header: http.Header{"Traceparent": {sent}}})
		if err != nil || r.Status != 200 {
			t.Fatalf("seed %d: %q: %v, status %d", seed, sent, err, r.Status)
		}
		got := parentOf(t, r.Echo.Header)
		want := oracle(sent)
		if !want.IsValid() {
			invalid++
			if got.flags != "01" || got.trace == clients {
				t.Errorf("seed %d: %q is not valid, and the backend got %+v", seed, sent, got)
			}
			continue
		}
		valid++
		if flags := map[bool]string{true: "01", false: "00"}[want.IsSampled()]; got.trace != want.TraceID().String() || got.flags != flags {
			t.Errorf("seed %d: %q became %+v, want %s with %s", seed, sent, got, want.TraceID(), flags)
		}
	}
	if valid < asked/10 || invalid < asked/10 {
		t.Errorf("%d valid and %d invalid traceparents show nothing", valid, invalid)
	}
}

// mutated is a traceparent with a few random changes.
func mutated(random *rand.Rand) string {
	const alphabet = "0123456789abcdefABCDEFg-._ ~\""
	text := []byte([]string{sampled, unsampled, "cc" + sampled[2:] + "-more", "01" + unsampled[2:]}[random.IntN(4)])
	for range random.IntN(4) {
		at := random.IntN(len(text))
		letter := alphabet[random.IntN(len(alphabet))]
		switch random.IntN(5) {
		case 0:
			text = append(text[:at], text[at+1:]...)
		case 1:
			text = append(text[:at], append([]byte{letter}, text[at:]...)...)
		case 2:
			// A field of zeros.
			field := strings.Split(string(text), "-")
			i := random.IntN(len(field))
			field[i] = strings.Repeat("0", len(field[i]))
			text = []byte(strings.Join(field, "-"))
		default:
			text[at] = letter
		}
	}
	return strings.TrimSpace(string(text))
}

// oracle is what OpenTelemetry's library reads. By the specification, unknown flags are ignored in any version,
// and a first version has no more than its 55 bytes: the library refuses the ones and takes a hyphen more.
func oracle(text string) trace.SpanContext {
	const length, flags = 55, 53
	if strings.HasPrefix(text, "00-") && len(text) != length {
		return trace.SpanContext{}
	}
	if strings.HasPrefix(text, "00-") && strings.Trim(text[flags:], "0123456789abcdef") == "" {
		last := strings.IndexByte("0123456789abcdef", text[length-1])
		text = text[:flags] + "0" + string("01"[last%2])
	}
	carrier := propagation.MapCarrier{"traceparent": text}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
