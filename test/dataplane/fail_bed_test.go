package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/gatetest"
	"github.com/headgate/headgate/internal/model"
)

// catching are the real features and one that has the fallback answer in the
// place of statuses, "catch: 404,503", or only in that of Headgate's own, "catch-own".
// Of 418 alone it makes 404. It counts requests, and each answer tells what it knows.
func catching() []feature.Feature {
	catch := feature.Setting[model.Statuses]{Annotation: "catch", Parse: model.ParseStatuses}
	own := feature.Setting[model.Statuses]{Annotation: "catch-own", Parse: model.ParseStatuses}
	return append(all.Features(), feature.Feature{
		Name: "catching", Settings: []feature.Declared{catch, own},
		Route: func(v feature.Values, out *feature.RouteOut) {
			out.Route.Profile.Catch = catch.Get(v)
			feature.Add(out.Route, "catching", slices.AppendSeq(slices.Collect(out.Route.Profile.Catch.All()), own.Get(v).All()))
			out.Route.Mode.Answers = true
		},
		Lua: `
local requests = require "headgate.request"
local begun, over, twice = 0, 0, 0
return {
    route = function(_, request)
        begun = begun + 1
        request.begun = true
    end,
    fail = function(statuses, request, status)
        request.fails = (request.fails or 0) + 1
        if status == 418 and #statuses == 1 then
            return requests.finish(request, 404)
        end
        for _, s in ipairs(statuses) do
            request.falls_back = request.falls_back or s == status
        end
    end,
    answer = function(_, request)
        local h = ngx.header
        h["X-Begun"], h["X-Over"], h["X-Over-Twice"], h["X-Failed"] = begun, over, twice, request.failed
        h["X-Fails"] = request.fails or 0
        h["X-Answers"] = (tonumber(h["X-Answers"]) or 0) + 1
    end,
    done = function(_, request)
        twice = twice + (request.over and 1 or 0)
        over = over + (request.begun and 1 or 0)
        request.over = true
    end,
}`,
	})
}

// statusOf answers as the header asks for, 200 if it does not.
func statusOf(w http.ResponseWriter, r *http.Request, header string) {
	status, err := strconv.Atoi(r.Header.Get(header))
	if err != nil {
		status = 200
	}
	w.WriteHeader(status)
}

// An errorBed has a backend that answers as X-Want says, and one for errors, which
// answers as X-Errors says and tells what it was asked.
type errorBed struct {
	*gatetest.Gate
	// asked gets a line for each request that reaches the route's own backend.
	asked chan string
	pages string
}

func startErrorBed(t *testing.T, manifests string) *errorBed {
	t.Helper()
	b := &errorBed{asked: make(chan string, 1000)}
	own := gatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked <- r.Method + " " + r.RequestURI
		if r.Header.Get("X-Early") == "" {
			io.Copy(io.Discard, r.Body)
		} else {
			// Go would wait for the body.
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("X-Own", "1")
		w.Header().Set("WWW-Authenticate", "Own")
		statusOf(w, r, "X-Want")
		fmt.Fprint(w, "own")
	}))
	b.pages = gatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header
		w.Header().Set("X-Page", fmt.Sprintf("%s %s %s code=%s original=%s format=%s of=%s/%s/%s:%s body=%.8q length=%d/%d auth=%q upgrade=%q", r.Method, r.Host, r.RequestURI,
			h.Get("X-Code"), h.Get("X-Original-URI"), h.Get("X-Format"), h.Get("X-Namespace"), h.Get("X-Ingress-Name"), h.Get("X-Service-Name"), h.Get("X-Service-Port"),
			body, len(body), r.ContentLength, h.Get("Authorization")+h.Get("X-Call"), h.Get("Upgrade")))
		w.Header().Set("X-Id", h.Get("X-Request-ID"))
		statusOf(w, r, "X-Errors")
		fmt.Fprint(w, "page")
	}))
	refusing := gatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { statusOf(w, r, "X-Judge") }))
	b.Gate = gatetest.Start(t, gatetest.Options{
		Workers: 1, Features: catching(), Timing: gatetest.Hasty(),
		Manifests: served("own", own) + served("pages", b.pages) + served("none") + served("dead", "127.0.0.1:1") +
			"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n" + strings.ReplaceAll(manifests, "JUDGE", refusing),
	})
	return b
}

// errorRoute is an Ingress of a.test with the error backend.
func errorRoute(name, service string, annotations ...string) string {
	return gatetest.Ingress(name, "a.test", "/"+name, service, append(annotations, "default-backend: pages", "ssl-redirect: false")...)
}

// An errorCase is a request and what comes of it. Page and own are what reaches
// the error backend and the route's own, empty for nothing.
type errorCase struct {
	method, path string
	header       http.Header
	body         string
	status       int
	page, own    string
}

func (b *errorBed) check(t *testing.T, c errorCase, scheme string, http2 bool) gatetest.Response {
	t.Helper()
	q := gatetest.Request{Method: c.method, Host: "a.test", Path: c.path, Header: c.header.Clone(), Scheme: scheme, HTTP2: http2}
	if c.body != "" {
		q.Body = strings.NewReader(c.body)
	}
	r := b.Do(q)
	own := ""
	select {
	case own = <-b.asked:
	default:
	}
	if r.Status != c.status || r.Header.Get("X-Page") != c.page || own != c.own {
		t.Errorf("%s %s %v by %s: %d\n page %s\n own  %s\nwant %d\n page %s\n own  %s",
			c.method, c.path, c.header, r.Proto, r.Status, r.Header.Get("X-Page"), own, c.status, c.page, c.own)
	}
	if (r.Header.Get("X-Page") != "") != (r.Header.Get("X-Id") != "") {
		t.Error("a page without X-Request-ID")
	}
	if c.method != "HEAD" && c.page != "" && r.Body != "page" {
		t.Errorf("%s %s: the body is %q", c.method, c.path, r.Body)
	}
	if (r.Header.Get("X-Failed") != "") != (r.Header.Get("X-Fails") == "1") || r.Header.Get("X-Answers") != "1" {
		t.Errorf("%s %s: failed with %q, asked %s times, %s answers", c.method, c.path, r.Header.Get("X-Failed"), r.Header.Get("X-Fails"), r.Header.Get("X-Answers"))
	}
	return r
}

// settled fails the test unless every request but this one is over, once.
func (b *errorBed) settled(t *testing.T) {
	t.Helper()
	gatetest.Eventually(t, "all requests are over", func() bool {
		h := b.Get("a.test", "/e").Header
		<-b.asked
		if h.Get("X-Over-Twice") != "0" {
			t.Fatalf("%s requests were over twice", h.Get("X-Over-Twice"))
		}
		begun, _ := strconv.Atoi(h.Get("X-Begun"))
		over, err := strconv.Atoi(h.Get("X-Over"))
		return err == nil && begun == over+1
	})
	gatetest.Eventually(t, "no request is kept", func() bool { return b.State().Kept == 0 })
}

func head(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = []string{pairs[i+1]}
	}
	return h
}
