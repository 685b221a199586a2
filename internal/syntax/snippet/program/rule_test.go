package program_test

import (
	"encoding/json"
	"testing"

	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

func TestRulesHaveBounds(t *testing.T) {
	t.Parallel()
	for network, want := range map[string]string{
		"all":              `{"allow":true,"all":true}`,
		"unix:":            `{"allow":true,"unix":true}`,
		"10.1.2.3":         `{"allow":true,"first":"0a010203","last":"0a010203"}`,
		"10.1.2.3/8":       `{"allow":true,"first":"0a000000","last":"0affffff"}`,
		"192.168.128.0/17": `{"allow":true,"first":"c0a88000","last":"c0a8ffff"}`,
		"0.0.0.0/0":        `{"allow":true,"first":"00000000","last":"ffffffff"}`,
		"fd00::1/9":        `{"allow":true,"first":"fd000000000000000000000000000000","last":"fd7fffffffffffffffffffffffffffff"}`,
		"nobody":           `{"allow":true}`,
	} {
		if got, err := json.Marshal(program.Rule{Allow: true, Network: network}); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", network, got, err, want)
		}
	}
}
