package unit_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// TestKinds: each kind has one entry, and what is pushed is packed.
func TestKinds(t *testing.T) {
	t.Parallel()
	packed := map[unit.Kind]bool{}
	for _, m := range []any{
		model.Globals{}, model.Certificate{}, model.OCSPResponse{}, model.Backend{}, model.Host{}, model.Name{}, model.NamePatterns{},
	} {
		built := unit.Of(m)
		packed[built.Kind] = true
		if u, ok := built.Pack(); !ok || u.Key != built.Key && u.Key != unit.Certificate.Key(model.DefaultCertificate) {
			t.Errorf("%s is packed as %s", built.Key, u.Key)
		}
		if built.Model = nil; built.Kind != "" {
			if _, ok := built.Pack(); ok {
				t.Errorf("no %s is packed as one", built.Kind)
			}
		}
	}
	seen := map[unit.Kind]bool{}
	prefixes := map[string]bool{"": true}
	for _, of := range unit.Kinds() {
		if seen[of.Kind] || of.Pushed() && prefixes[of.Prefix] {
			t.Errorf("%s: the kind or its prefix %q stands there twice", of.Kind, of.Prefix)
		}
		seen[of.Kind], prefixes[of.Prefix] = true, true
		if of.Kind.Traits() != of || of.Pushed() != (of.Dictionary != "") {
			t.Errorf("%+v", of)
		}
		if of.Built && of.Kind != unit.Refusal && of.Kind != unit.Stream && !packed[of.Kind] {
			t.Errorf("%s is built by its key, and Pack does not know it", of.Kind)
		}
	}
	if unit.Kind("other").Traits() != (unit.Traits{}) {
		t.Error("what is not a kind has traits")
	}
}

// TestKindsOfLua: the data plane has the kinds that are pushed, by the same
// prefixes and in the same dictionaries.
func TestKindsOfLua(t *testing.T) {
	t.Parallel()
	units, err := os.ReadFile("../../lua/headgate/units.lua")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.ReadFile("../../lua/headgate/memory.lua")
	if err != nil {
		t.Fatal(err)
	}
	inLua := map[unit.Kind]string{}
	for _, m := range regexp.MustCompile(`(?m)^    (\w+) = \{\s+letter = "(\w:)"`).FindAllSubmatch(units, -1) {
		inLua[unit.Kind(m[1])] = string(m[2])
	}
	// All that is not among the certificates is in the dictionary of units.
	apart := map[string]bool{}
	for _, m := range regexp.MustCompile(`string\.sub\(key, 1, 2\) == "(\w:)" then\s+return certificates`).FindAllSubmatch(memory, -1) {
		apart[string(m[1])] = true
	}
	for _, of := range unit.Kinds() {
		if inLua[of.Kind] != of.Prefix {
			t.Errorf("lua/headgate/units.lua has the prefix %q of %s, want %q", inLua[of.Kind], of.Kind, of.Prefix)
		}
		if of.Pushed() && apart[of.Prefix] != (of.Dictionary == "certificates") {
			t.Errorf("lua/headgate/memory.lua keeps %s in another dictionary than %s", of.Kind, of.Dictionary)
		}
		delete(inLua, of.Kind)
	}
	for kind := range inLua {
		t.Errorf("lua/headgate/units.lua has the kind %s, which internal/unit does not have", kind)
	}
}
