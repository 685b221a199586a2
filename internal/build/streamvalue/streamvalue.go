// Package streamvalue reads the entries of the ConfigMaps with TCP and UDP services:
// which port is passed on to which port of which Service.
//
// It is pure, like package build, and knows the text alone.
package streamvalue

import (
	"errors"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/model"
)

// A Value is what an entry says.
type Value struct {
	Service types.NamespacedName
	// Port is the number or name of the Service's port.
	Port string
	// ProxyIn and ProxyOut are set by the word PROXY.
	ProxyIn, ProxyOut bool
	// Ignored is why a part of the text has no effect, empty if all has.
	Ignored string
}

const proxy = "PROXY"

// Parse reads the value of an entry.
func Parse(protocol, text string) (Value, error) {
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) < 2 {
		return Value{}, errForm(protocol)
	}
	namespace, name, ok := strings.Cut(parts[0], "/")
	v := Value{Service: types.NamespacedName{Namespace: namespace, Name: name}, Port: parts[1]}
	if !ok || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0 || !isPort(v.Port) {
		return Value{}, errForm(protocol)
	}
	words := [2]*bool{&v.ProxyIn, &v.ProxyOut}
	for i, word := range parts[2:] {
		switch {
		case word == "" && i < len(words):
		case protocol != model.TCP && strings.EqualFold(word, proxy):
			v.Ignored = "the PROXY protocol is for TCP only"
		case i < len(words) && strings.EqualFold(word, proxy):
			*words[i] = true
		case i < len(words):
			v.Ignored = "the third and fourth part must be PROXY or empty"
		default:
			v.Ignored = "there must be at most four parts"
		}
	}
	return v, nil
}

// isPort reports whether the text can be the number or the name of a Service's port.
func isPort(text string) bool {
	if _, err := strconv.Atoi(text); err == nil {
		_, err = Port(text)
		return err == nil
	}
	return len(validation.IsDNS1123Label(text)) == 0
}

func errForm(protocol string) error {
	if protocol == model.TCP {
		return errors.New("must be NAMESPACE/SERVICE:PORT, NAMESPACE/SERVICE:PORT:PROXY or NAMESPACE/SERVICE:PORT:[PROXY]:PROXY")
	}
	return errors.New("must be NAMESPACE/SERVICE:PORT")
}

// Port reads the key of an entry: the port to open.
func Port(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
		return 0, errors.New("must be a port from 1 to 65535, without leading zeros")
	}
	return uint16(n), nil
}
