package journal

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// FuzzLoad: a file is refused or has whole cuts, which are the same when they are written again. With sealed, the
// bytes are records in a cut that is not damaged: no fuzzer finds a sum.
func FuzzLoad(f *testing.F) {
	const schema = 3
	var whole bytes.Buffer
	cut := publish.Cut{
		Resources: []wire.Resource{{Key: unit.Host.Key("a.test"), Version: "1", Bytes: []byte("{}")}},
		Gone:      []unit.Key{unit.Host.Key("b.test")},
	}
	last, _, err := writeAll(&whole, schema, cut)
	if err != nil {
		f.Fatal(err)
	}
	first := whole.Len()
	if _, _, err := writeCut(&whole, last, publish.Cut{Gone: []unit.Key{unit.Host.Key("a.test")}}); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes(), false)
	f.Add(whole.Bytes()[:first+5], false)
	f.Add(append(header(schema), head(1<<63)...), false)
	f.Add(whole.Bytes()[headerSize+headSize:first-len(last)], true)
	f.Add([]byte{isResource, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, true)
	f.Add([]byte{isGone, 1, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}, true)
	f.Fuzz(func(t *testing.T, text []byte, sealed bool) {
		if sealed {
			start := header(schema)
			sums := sumAfter(sha256.Sum256(start))
			sums.Write(text)
			text = sums.Sum(append(append(start, head(uint64(len(text)))...), text...))
		}
		got, err := read(bytes.NewReader(text), int64(len(text)), schema)
		switch {
		case errors.Is(err, errUnusable):
			if len(got.resources) > 0 {
				t.Fatalf("%v, and yet %v", err, got.resources)
			}
			return
		case errors.Is(err, errUnfinished):
			if got.size >= int64(len(text)) {
				t.Fatalf("unfinished after %d of %d bytes", got.size, len(text))
			}
		case err != nil:
			t.Fatal(err)
		case got.size != int64(len(text)):
			t.Fatalf("read %d of %d bytes", got.size, len(text))
		}
		var cut publish.Cut
		var live int64
		for _, r := range got.resources {
			cut.Resources = append(cut.Resources, r)
			live += recordSize(r)
		}
		if got.live != live {
			t.Errorf("%d bytes are of use, counted %d", live, got.live)
		}
		var again bytes.Buffer
		last, size, err := writeAll(&again, schema, cut)
		if err != nil || size != int64(again.Len()) {
			t.Fatalf("written again: %d of %d bytes, %v", size, again.Len(), err)
		}
		reread, err := read(&again, size, schema)
		if err != nil || reread.sum != last {
			t.Fatalf("read again: %v", err)
		}
		if diff := cmp.Diff(got.resources, reread.resources); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}
