package wire_test

import (
	"testing"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/wire"
)

// FuzzDecode: bytes are refused or give a unit that can be packed and sent on, as it is.
func FuzzDecode(f *testing.F) {
	for kind, text := range map[unit.Kind]string{
		unit.Host:         `{"Model":{"Name":"a.test","Routes":[{"Kind":1,"Path":"/","Profile":"http tls a=1 b:0f","Variant":{"Check":1},"Policies":[{"Feature":"x","Value":{"a":1}}],"Trace":{"On":true,"Name":["b"]}}]}}`,
		unit.Name:         `{"Model":{"Name":"a.test","Host":"b.test","Covers":["c.test"]},"Certificates":[{"Hash":"h","Secret":"n/s"}]}`,
		unit.Backend:      `{"Model":{"Key":"n/s/80","Endpoints":["10.0.0.1:80","[::1]:80"],"Picker":{"Feature":"x","Value":1}}}`,
		unit.Globals:      `{"Model":{"Default":"grpc","Process":{"DefaultType":"text/css","Curves":"X25519","RequestLog":{"Escape":1,"Format":"$status"},"Geo":{"Databases":[{"Edition":"GeoIP2-City"}]}}}}`,
		unit.Patterns:     `{"Model":{"Regexes":[{"Name":"~a","Host":"b.test"}]}}`,
		unit.Stream:       `{"Model":{"Protocol":"udp","Port":53,"Endpoints":["10.0.0.1:53"]}}`,
		unit.OCSPResponse: `{"Model":{"Certificate":"h","Response":"AA==","Until":"2026-01-01T00:00:00Z"}}`,
	} {
		f.Add(string(kind), text)
	}
	certificate := func(unit.Key) ([]byte, bool) { return []byte(`{"Hash":"h","Chain":"AA==","Key":"AA=="}`), true }
	f.Fuzz(func(t *testing.T, kind, text string) {
		key := unit.Kind(kind).Key("x")
		built, err := wire.Decode(key, []byte(text), certificate)
		if err != nil {
			return
		}
		before, _ := built.Pack()
		sent, err := wire.Encode(built)
		if err != nil {
			t.Fatalf("%s can't be sent on: %v", text, err)
		}
		again, err := wire.Decode(key, sent[0].Bytes, certificate)
		if err != nil {
			t.Fatalf("%s, sent on as %s: %v", text, sent[0].Bytes, err)
		}
		if after, _ := again.Pack(); after.Version != before.Version {
			t.Errorf("%s is packed as %s, and sent on as %s", text, before.Payload, after.Payload)
		}
	})
}
