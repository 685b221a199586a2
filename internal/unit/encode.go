package unit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// VersionOf is the version of a payload and an owner.
func VersionOf(payload []byte, owner string) string {
	sum := sha256.New()
	sum.Write(payload)
	io.WriteString(sum, owner)
	return hex.EncodeToString(sum.Sum(nil)[:10])
}

func encode(value any) []byte {
	text, err := JSON(value)
	if err != nil {
		panic(fmt.Sprintf("unit: a policy is not plain data: %v", err))
	}
	return text
}

// JSON is a value in JSON without the escapes for HTML, which would only make it longer.
func JSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
