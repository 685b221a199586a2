package model_test

import (
	"testing"

	"github.com/headgate/headgate/internal/model"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "[::1]": "::1", "[2001:DB8::1]": "2001:db8::1", "[::ffff:127.0.0.1]": "127.0.0.1",
		"::1": "", "[10.0.0.1]": "", "[fe80::1%eth0]": "", "a.example": "", "": "", "[]": "", "10.0.0": "", "0177.0.0.1": "",
	} {
		address, ok := model.Address(text)
		if ok != (want != "") || ok && address.String() != want {
			t.Errorf("%q: %v %v, want %q", text, address, ok, want)
		}
	}
}

func TestCallBackend(t *testing.T) {
	for host, want := range map[string]string{
		"web.shop.svc": "shop/web/80", "web.shop.svc.cluster.local": "shop/web/80", "web.shop.svc.cluster.local.": "shop/web/80",
		"web.shop": "/web.shop/80", "pod.web.shop.svc": "/pod.web.shop.svc/80", "svc": "/svc/80", "10.0.0.1": "/10.0.0.1/80",
	} {
		if got := (model.Call{Host: host, Port: 80}).Backend(); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}
