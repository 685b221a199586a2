package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseWrk(t *testing.T) {
	const out = `  9000 requests in 1.00s, 2.50MB read
Requests/sec:   8991.5
Transfer/sec:      2.50MB
delays 3210 10500 21000
`
	rate, times, err := parseWrk(out)
	if err != nil || rate != 8991.5 || times != (delays{3.21, 10.5, 21}) {
		t.Errorf("got %v, %v, %v", rate, times, err)
	}
	if _, _, err := parseWrk("Requests/sec: 1\n"); err == nil {
		t.Error("a report without delays is taken")
	}
}

func TestParseH2load(t *testing.T) {
	const out = "finished in 1.00s, 1234.50 req/s, 50KB/s\n"
	// The stream that was cut off does not count.
	log := "100\t200\t3000\n" + "101\t200\t1000\n" + "102\t-1\t90000\n" + "103\t200\t2000\n"
	rate, times, err := parseH2load(out, log)
	if err != nil || rate != 1234.5 || times != (delays{2, 3, 3}) {
		t.Errorf("got %v, %v, %v", rate, times, err)
	}
	if _, _, err := parseH2load(out, "102\t-1\t90000\n"); err == nil {
		t.Error("a log without an answer is taken")
	}
}

func TestOwnMemory(t *testing.T) {
	const text = "Rss:  900 kB\nPss:  800 kB\nPss_Anon:  500 kB\nPss_File:  200 kB\nPss_Shmem:  100 kB\n"
	if got, err := ownMemory(text); err != nil || got != 600<<10 {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := ownMemory("Rss: 900 kB\n"); err == nil {
		t.Error("a text without the fields is taken")
	}
}

func TestDescendants(t *testing.T) {
	got := descendants(10, map[int]int{10: 1, 11: 10, 12: 11, 13: 1, 14: 13})
	slices.Sort(got)
	if !slices.Equal(got, []int{10, 11, 12}) {
		t.Errorf("got %v", got)
	}
}

func TestMarkdownTable(t *testing.T) {
	got := markdownTable([]string{"", "a", "b"}, [][]string{{"row", "1", "2"}})
	if want := "|  | a | b |\n| --- | --- | --- |\n| row | 1 | 2 |\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMedianDelays(t *testing.T) {
	got := medianDelays([]delays{{0.5, 2, 3000}, {0.25, 12.34, 20}, {1, 1, 1234}})
	if want := "0.50 / 2.0 / 1,234"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProxyFiles makes sure that each proxy gets all that is asked of it.
func TestProxyFiles(t *testing.T) {
	pair, err := newCertificate("*.example.com")
	if err != nil {
		t.Fatal(err)
	}
	p := &runningProxy{
		Dir: "/dir", HTTP: 10001, HTTPS: 10002, Admin: 10003, Hosts: []string{"one.example.com", "two.example.com"},
		Endpoints: []string{"127.0.0.1:10004", "127.0.0.2:10004"}, GRPCHost: grpcHost, GRPC: "127.0.0.1:10005", pair: pair,
	}
	for _, kind := range proxyKinds() {
		files, err := kind.files(&stage{}, p)
		if err != nil {
			t.Errorf("%s: %v", kind.name, err)
			continue
		}
		all := strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, text := range files {
				if !yield(strings.ReplaceAll(text, "[.]", ".")) {
					return
				}
			}
		}), "\n")
		wanted := []string{"one.example.com", "two.example.com", "127.0.0.2", "10004", "BEGIN CERTIFICATE"}
		if kind.name == "Headgate" {
			wanted[4] = "kubernetes.io/tls"
		}
		if !kind.noGRPC {
			wanted = append(wanted, grpcHost, "10005")
		}
		for _, text := range wanted {
			if !strings.Contains(all, text) {
				t.Errorf("%s: the files lack %s", kind.name, text)
			}
		}
	}
}
