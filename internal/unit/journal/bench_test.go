package journal_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/journal"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// manyHosts is what an edge has of hosts with a name, a backend and a certificate each.
func manyHosts(n int) publish.Cut {
	var c publish.Cut
	for _, of := range []struct {
		kind unit.Kind
		size int
	}{{unit.Certificate, 3000}, {unit.Backend, 200}, {unit.Host, 1000}, {unit.Name, 150}} {
		text := strings.Repeat("x", of.size)
		for i := range n {
			c.Resources = append(c.Resources, resource(of.kind.Key(fmt.Sprintf("host-%05d.example.com", i)), fmt.Sprint(i, text)))
		}
	}
	return c
}

// BenchmarkAppend keeps a change of one of 10,000 hosts. The file is compacted when that is due.
func BenchmarkAppend(b *testing.B) {
	dir := inMemory(b)
	j, _ := open(b, dir)
	c := manyHosts(10_000)
	add(b, j, c)
	hosts := c.Resources[20_000:30_000]
	for i := 0; b.Loop(); i++ {
		add(b, j, publish.Cut{Resources: []wire.Resource{hosts[i%len(hosts)]}})
	}
}

// BenchmarkLoad opens what 10,000 hosts have.
func BenchmarkLoad(b *testing.B) {
	dir := inMemory(b)
	j, _ := open(b, dir)
	add(b, j, manyHosts(10_000))
	j.Close()
	info, err := os.Stat(filepath.Join(dir, "units"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
	for b.Loop() {
		j, err := journal.Open(dir, schema, slog.New(slog.NewTextHandler(io.Discard, nil)))
		if err != nil {
			b.Fatal(err)
		}
		j.Load()
		j.Close()
	}
}

// BenchmarkCompact writes all that 10,000 hosts have, as compaction and a first cut do.
func BenchmarkCompact(b *testing.B) {
	c := manyHosts(10_000)
	dir := inMemory(b)
	for b.Loop() {
		j, _ := open(b, dir)
		add(b, j, c)
		j.Close()
		b.StopTimer()
		os.RemoveAll(dir)
		b.StartTimer()
	}
}
