package plaintext

import (
	"encoding/json"
	"io"
)

// WriteJSON writes a value in the form of ingress-nginx's dbg. Of makes it safe to print.
func WriteJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
