// Package features_test sends each feature one representative request: `make test` runs it, and the features' own tests
// belong to `make test-all`. The file request.txtar in the directory of a feature has the request:
//
//	What the feature does for it.
//	-- ingress SERVICE PATH --
//	ANNOTATION: VALUE, or a string of Go
//	-- keys --
//	KEY: VALUE
//	-- objects --
//	MANIFESTS
//	-- request --
//	METHOD PATH [TIMES times]
//	NAME: VALUE
//
//	BODY
//	-- answer --
//	STATUS [PROTOCOL]
//	NAME: VALUE
//
//	PART OF THE BODY
//
// All sections but the last two may be missing. The host is FEATURE.test, or what the header Host says; a path that begins with
// https:// is asked for over TLS. The Services echo and other answer with what they got, and with the status and the headers that
// the request has in Answer-Status and Answer-NAME. A header of the answer whose value begins with ~ must match an
// expression. ${CA} is the certificate of an authority in JSON, ${LONG} a text of 20,000 bytes.
//
// Without the annotations and keys that the feature declares, the same request must get another answer: otherwise the
// file shows nothing.
package features_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// elsewhere are features whose effect is not seen in an answer, or not with two echo backends on
// this NGINX, by their directories, with the reason.
var elsewhere = map[string]string{
	"accesslog": "is seen in the log", "errorlog": "is seen in the log", "mirror": "the copy goes to another backend",
	"balancing": "is seen over many requests", "ejection": "needs endpoints that fail", "healthcheck": "needs endpoints that fail",
	"geoip": "needs databases", "http2": "is seen in the handshake", "handshake": "is seen in the handshake", "stapling": "is seen in the handshake",
	"http3": "needs NGINX 1.25", "listen": "needs addresses of the machine", "nginxstatus": "has a port of its own",
	"hashsize": "sizes tables of NGINX", "process": "sets up processes", "worker": "sets up processes",
	"ineffective": "is without effect", "opentelemetry": "is seen in a collector", "serviceupstream": "needs addresses of a cluster",
	"sslpassthrough": "is served without NGINX", "stream": "is served without NGINX",
}

// A sample is one file.
type sample struct {
	name            string
	ingresses       []ingress
	keys            []string
	objects         string
	request, answer string
}

type ingress struct {
	service, path string
	annotations   []string
}

func TestRequests(t *testing.T) {
	samples := read(t)
	backends := headgatetest.Service("echo") + headgatetest.Service("other") +
		headgatetest.Endpoints("echo", headgatetest.StartBackend(t, backend("echo"))) +
		headgatetest.Endpoints("other", headgatetest.StartBackend(t, backend("other")))
	declared := declaredBy()
	// One NGINX serves all that need no keys, one has nothing of the features; keys are of everything.
	shared, plain := backends, backends
	for _, s := range samples {
		if len(s.keys) == 0 {
			shared += s.manifests(nil)
		}
		plain += s.manifests(declared[s.name])
	}
	all, none := headgatetest.Start(t, headgatetest.Options{Manifests: shared}), headgatetest.Start(t, headgatetest.Options{Manifests: plain})
	t.Run("each", func(t *testing.T) {
		for _, s := range samples {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				g := all
				if len(s.keys) > 0 {
					g = headgatetest.Start(t, headgatetest.Options{Manifests: backends + s.manifests(nil) + headgatetest.Config(s.keys...)})
				}
				if fault := s.ask(t, g); fault != "" {
					t.Errorf("%s\n%s", s.request, fault)
				}
				if s.ask(t, none) == "" {
					t.Error("the answer is the same without the feature")
				}
			})
		}
	})
}

// declaredBy are the names of annotations and keys of each directory's features.
func declaredBy() map[string][]string {
	declared := map[string][]string{}
	for _, f := range all.Features() {
		for _, s := range f.Settings {
			directory := featuretest.Directory(f)
			declared[directory] = append(declared[directory], s.Spec().Annotation, s.Spec().Key)
		}
	}
	return declared
}

// read reads the file of each feature. A feature has one, or a reason why not.
func read(t *testing.T) []sample {
	t.Helper()
	authority, err := json.Marshal(headgatetest.NewKeyPair(t, "authority").Certificate)
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("${CA}", string(authority), "${LONG}", strings.Repeat("x", 20_000))
	var samples []sample
	for directory := range declaredBy() {
		file := filepath.Join("../../internal/feature", directory, "request.txtar")
		text, err := os.ReadFile(file)
		switch {
		case err != nil && elsewhere[directory] == "":
			t.Errorf("%s: %v", directory, err)
		case err == nil && elsewhere[directory] != "":
			t.Errorf("%s: has a file, and a reason why not", directory)
		case err == nil:
			samples = append(samples, parse(t, directory, []byte(filled.Replace(string(text)))))
		}
	}
	slices.SortFunc(samples, func(a, b sample) int { return strings.Compare(a.name, b.name) })
	return samples
}

func parse(t *testing.T, name string, text []byte) sample {
	t.Helper()
	s := sample{name: name}
	for _, section := range txtar.Parse(text).Files {
		lines := strings.FieldsFunc(string(section.Data), func(r rune) bool { return r == '\n' })
		switch words := strings.Fields(section.Name); {
		case len(words) == 3 && words[0] == "ingress":
			s.ingresses = append(s.ingresses, ingress{words[1], words[2], unquote(lines)})
		case section.Name == "keys":
			s.keys = lines
		case section.Name == "objects":
			s.objects = "---\n" + string(section.Data)
		case section.Name == "request":
			s.request = string(section.Data)
		case section.Name == "answer":
			s.answer = string(section.Data)
		default:
			t.Fatalf("%s: the section %q is not known", name, section.Name)
		}
	}
	if len(s.ingresses) == 0 {
		s.ingresses = []ingress{{"echo", "/", nil}}
	}
	return s
}

// unquote reads values that are strings of Go.
func unquote(lines []string) []string {
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		if text, err := strconv.Unquote(value); err == nil {
			lines[i] = name + ": " + text
		}
	}
	return lines
}

// manifests are the Ingresses and objects, without the annotations that are left out.
func (s sample) manifests(leftOut []string) string {
	text := s.objects
	for i, of := range s.ingresses {
		annotations := slices.DeleteFunc(slices.Clone(of.annotations), func(a string) bool {
			name, _, _ := strings.Cut(a, ":")
			return slices.Contains(leftOut, name)
		})
		text += headgatetest.Ingress(fmt.Sprintf("%s-%d", s.name, len(s.ingresses)-i), s.name+".test", of.path, of.service, annotations...)
	}
	return text
}

// ask sends the request, and says in what the answer differs from what it must be.
func (s sample) ask(t *testing.T, g *headgatetest.Instance) string {
	t.Helper()
	head, body, _ := strings.Cut(s.request, "\n\n")
	line, headers, _ := strings.Cut(head, "\n")
	words := strings.Fields(line)
	times := 1
	if len(words) == 4 {
		times, _ = strconv.Atoi(words[2])
	}
	var r headgatetest.Response
	for range times {
		request := headgatetest.Request{Method: words[0], Host: s.name + ".test", Path: words[1], Header: http.Header{}, Body: strings.NewReader(strings.TrimSpace(body))}
		if path, secure := strings.CutPrefix(words[1], "https://"); secure {
			request.Scheme, request.Path, request.HTTP2 = "https", path, true
		}
		for name, value := range pairs(headers) {
			if name == "Host" {
				request.Host = value
			} else {
				request.Header.Add(name, value)
			}
		}
		r = g.Do(request)
	}
	return s.compare(r)
}

// pairs are lines of names and values.
func pairs(text string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !yield(name, value) {
				return
			}
		}
	}
}

func (s sample) compare(r headgatetest.Response) string {
	head, parts, _ := strings.Cut(s.answer, "\n\n")
	line, headers, _ := strings.Cut(strings.TrimSpace(head), "\n")
	if got := fmt.Sprintf("%d %s", r.Status, r.Proto); !strings.HasPrefix(got+" ", line+" ") {
		return fmt.Sprintf("got %s, want %s", got, line)
	}
	for name, want := range pairs(headers) {
		got := r.Header.Get(name)
		if pattern, is := strings.CutPrefix(want, "~"); is && regexp.MustCompile(pattern).MatchString(got) || got == want {
			continue
		}
		return fmt.Sprintf("got %s: %q, want %q", name, got, want)
	}
	for part := range strings.Lines(parts) {
		if part = strings.TrimSpace(part); !strings.Contains(r.Body, part) {
			return fmt.Sprintf("want %s in\n%s", part, r.Body)
		}
	}
	return ""
}

// backend answers with what it got, and as the request asks it to.
func backend(name string) http.Handler {
	echo := headgatetest.Echoes(name)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for header := range r.Header {
			if of, asked := strings.CutPrefix(header, "Answer-"); asked && of != "Status" {
				w.Header().Set(of, r.Header.Get(header))
			}
		}
		// An error that another Service is to answer comes with its code.
		if status, err := strconv.Atoi(r.Header.Get("Answer-Status")); err == nil && r.Header.Get("X-Code") == "" {
			w.WriteHeader(status)
			fmt.Fprint(w, strings.Repeat("text of the backend ", 100))
			return
		}
		echo.ServeHTTP(w, r)
	})
}
