package linequeue_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/observe/linequeue"
)

// A reader that hangs costs lines, and does not stop the writer. Those that found
// room arrive complete and in order.
func TestReaderHangs(t *testing.T) {
	t.Parallel()
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := linequeue.New(out)
	line := func(i int) string { return fmt.Sprintf("%d %s\n", i, strings.Repeat("x", 1000)) }
	const lines = 2 * linequeue.MaxBytes / 1000
	for i := range lines {
		if n, err := w.Write([]byte(line(i))); n != len(line(i)) || err != nil {
			t.Fatal(n, err)
		}
	}
	dropped := w.Dropped()
	if dropped < lines/4 || dropped > lines*3/4 {
		t.Errorf("%d of %d lines were dropped", dropped, lines)
	}
	read := make(chan string)
	go func() {
		var text bytes.Buffer
		text.ReadFrom(r)
		read <- text.String()
	}()
	w.Flush(time.Minute)
	out.Close()
	// Which lines are dropped depends on when the pipe took some. The others arrive whole, in their order.
	rest, arrived := <-read, 0
	for i := range lines {
		if after, ok := strings.CutPrefix(rest, line(i)); ok {
			rest = after
			arrived++
		}
	}
	if rest != "" || arrived != int(lines-dropped) {
		t.Errorf("%d lines arrived, not %d; left are %d bytes", arrived, lines-dropped, len(rest))
	}
}

func TestFlushEnds(t *testing.T) {
	t.Parallel()
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w := linequeue.New(out)
	w.Flush(time.Minute)
	w.Write(make([]byte, 100<<10)) // More than a pipe holds.
	begun := time.Now()
	w.Flush(time.Millisecond)
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
