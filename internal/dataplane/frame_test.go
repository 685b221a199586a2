package dataplane

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/unit"
)

// pack packs entries into frames, checks each frame, and returns what a reader of
// the frames sees.
func pack(t *testing.T, entries []unit.Change) []unit.Change {
	t.Helper()
	var parts []part
	complete := 0
	for f := range frames(3, 7, entries) {
		if len(f.body) > MaxFrame {
			t.Fatalf("frame of %d bytes", len(f.body))
		}
		d, err := decode(f.body)
		if err != nil {
			t.Fatal(err)
		}
		if d.dictionary != 3 || d.generation != 7 {
			t.Fatalf("frame for dictionary %d, generation %d", d.dictionary, d.generation)
		}
		for _, p := range d.parts {
			if p.parts > 1 && len(d.parts) > 1 {
				t.Fatalf("part %d/%d shares its frame", p.num, p.parts)
			}
			if p.num == p.parts {
				complete++
			}
		}
		if f.entries != complete {
			t.Fatalf("frame says %d entries are complete, %d are", f.entries, complete)
		}
		parts = append(parts, d.parts...)
	}
	got, err := join(parts)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(want, got []unit.Change) string {
	return cmp.Diff(want, got, cmp.Comparer(bytes.Equal))
}

func TestFrameBytes(t *testing.T) {
	var all []string
	for f := range frames(1, 4, []unit.Change{
		{Kind: "name", Name: "a.test", Needs: 2, Version: "0af", Payload: []byte(`{"host":"a.test"}`)},
		{Kind: "host", Name: "b.test", Delete: true},
	}) {
		all = append(all, string(f.body))
	}
	want := []string{
		"headgate 1 1 4 1 2582604422\n" + "put name 2 0af 1/1 6 17\na.test{\"host\":\"a.test\"}",
		"headgate 1 1 4 1 1899280219\n" + "del host 6\nb.test",
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}

func TestFramesKeepOrderAndSize(t *testing.T) {
	size := func(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }
	var many []unit.Change
	for i := range 3000 {
		many = append(many, unit.Change{Kind: "backend", Name: fmt.Sprint("b", i), Version: "a", Payload: size(i % 1500)})
	}
	room := MaxFrame - lineRoom - len("put host 0 1 1/1 1 262000\n") - 1
	for name, entries := range map[string][]unit.Change{
		"none":  nil,
		"empty": {{Kind: "host", Name: "a", Version: "1"}},
		"many":  many,
		"edge": {
			{Kind: "host", Name: "a", Version: "1", Payload: size(room)},
			{Kind: "host", Name: "b", Version: "1", Payload: size(room + 1)},
			{Kind: "host", Name: "c", Version: "1", Payload: size(partSize * 2)},
			{Kind: "host", Name: "d", Version: "1", Payload: size(partSize*2 + 1)},
			{Kind: "host", Name: "e", Delete: true},
		},
		"large": {
			{Kind: "host", Name: "small", Version: "1", Payload: size(3)},
			{
				Kind: "certificate", Name: strings.Repeat("n", maxName), Needs: math.MaxInt,
				Version: strings.Repeat("f", maxVersion), Payload: size(2 << 20),
			},
			{Kind: "host", Name: "after", Version: "1", Payload: size(3)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := same(entries, pack(t, entries)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFramesAreFew(t *testing.T) {
	var entries []unit.Change
	for i := range 10000 {
		entries = append(entries, unit.Change{Kind: "host", Name: fmt.Sprint(i), Version: "1", Payload: make([]byte, 1000)})
	}
	var sizes []int
	for f := range frames(1, 1, entries) {
		sizes = append(sizes, len(f.body))
	}
	if least := slices.Min(sizes[:len(sizes)-1]); least < MaxFrame-2000 {
		t.Errorf("a frame of %d bytes before the last one", least)
	}
}

func TestFramesStop(t *testing.T) {
	entries := []unit.Change{
		{Kind: "host", Name: "a", Version: "1", Payload: make([]byte, 3*partSize)},
		{Kind: "host", Name: "b", Version: "1"},
	}
	seen := 0
	for range frames(1, 1, entries) {
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("%d frames, want 1", seen)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add("host", "shop.example.com", 3, "00ff", []byte("{}\n{}"), uint32(1), false)
	f.Add("certificate", "default", 0, "a", []byte(nil), uint32(4000), false)
	f.Add("backend", "ns/s/80", 1, "b", []byte{0, 10, 255}, uint32(200000), true)
	f.Fuzz(func(t *testing.T, kind, name string, needs int, version string, payload []byte, repeat uint32, gone bool) {
		e := unit.Change{Kind: unit.Kind(kind), Name: name, Needs: needs, Version: version, Same: version, Payload: payload, Delete: gone}
		if len(payload) > 0 {
			times := int(repeat) % (3*MaxFrame/len(payload) + 1)
			e.Payload = bytes.Repeat(payload, times)
		}
		if gone {
			e = unit.Change{Kind: unit.Kind(kind), Name: name, Delete: true}
		}
		if check(e) != nil {
			return
		}
		entries := []unit.Change{{Kind: "name", Name: "first", Version: "1", Payload: []byte("x")}, e, e}
		if diff := same(entries, pack(t, entries)); diff != "" {
			t.Error(diff)
		}
	})
}
