package plaintext

import (
	"encoding/json"
	"testing"
	"unicode"
)

func TestOf(t *testing.T) {
	if got, want := Of("a\x1b\u009b\U000e0001ä\n"), `a\u001b\u009b\udb40\udc01ä`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// FuzzOf: nothing is left that a terminal takes for a command, and JSON has the same value.
func FuzzOf(f *testing.F) {
	f.Add("a\x1b[2Jb\u009bc\xff\U000e0001ä\n\t")
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Of(text) {
			if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
				t.Errorf("%q has %q", Of(text), r)
			}
		}
		packed, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after string
		if err := json.Unmarshal(packed, &before); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(Of(string(packed))), &after); err != nil || before != after {
			t.Errorf("%q became %q: %v", before, after, err)
		}
	})
}
