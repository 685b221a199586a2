package main

import "testing"

func TestParse(t *testing.T) {
	for stat, want := range map[string]process{
		"7 (headgate) S 1 7 7 0 -1":          {7, 1, "headgate"},
		"42 (a) b (c) Z 7 42 42 0":           {42, 7, "a) b (c"},
		"9 (nginx-ingress-c) S 1 9 9 0 -1\n": {9, 1, "nginx-ingress-c"},
	} {
		if got, ok := parse([]byte(stat)); !ok || got != want {
			t.Errorf("%q: %+v, %v; want %+v", stat, got, ok, want)
		}
	}
	for _, stat := range []string{"", "7", "7 (", ")(", "7 (x)", "7 (x) S", "x (x) S 1", "7 (x) S x"} {
		if got, ok := parse([]byte(stat)); ok {
			t.Errorf("%q: %+v, want nothing", stat, got)
		}
	}
}

func TestIsController(t *testing.T) {
	for name, want := range map[string]bool{"headgate": true, "nginx-ingress-c": true, "nginx": false, "wait-shutdown": false} {
		if got := (process{name: name}).isController(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
