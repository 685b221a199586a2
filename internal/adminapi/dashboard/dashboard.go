// Package dashboard serves a page for people: what the controller's API says, in a browser.
//
// The page is plain HTML, CSS and JavaScript that is embedded here. It loads nothing from
// elsewhere, and shows all text of tenants as text. The server answers GET alone, has no
// cookies, and no other site can read it: a request must name this machine, so that no name in
// the DNS can be made to lead here. The package must not know what the API answers.
package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// Bounds of requests. What has the controller wait is answered one by one.
const (
	headerTimeout = 10 * time.Second
	answerTimeout = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 32 << 10
	// maxURI is the longest URI, and together how many requests of the API are answered at
	// once.
	maxURI   = 16 << 10
	together = 8
)

// policy lets the page load what this server has, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// delays reports whether the controller waits while the API answers.
func delays(path string) bool { return path == "/v1/explain" || path == "/v1/units" }

// A Server serves the page at an address.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// Listen opens an address, HOST:PORT. API answers what the page asks, at /v1/. The error is
// that of the system, without context.
func Listen(address string, api http.Handler, log *slog.Logger) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	handler, err := Handler(host, api)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &Server{listener, &http.Server{
		Handler: handler, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}, nil
}

// Address is where it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve serves until Close. It may be called on nil, which serves nothing.
func (s *Server) Serve() error {
	if s == nil {
		return nil
	}
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}

// Close ends the server immediately. It may be called on nil.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	err := s.server.Close()
	// Before Serve, the server does not know the listener. After it, that is closed.
	_ = s.listener.Close()
	return err
}

// Handler serves the page of a server that listens on a host, and the API.
func Handler(host string, api http.Handler) (http.Handler, error) {
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	places, delaying := make(chan struct{}, together), make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		switch status, why := refusal(r, host); {
		case status == http.StatusMethodNotAllowed:
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, status, why)
		case status != 0:
			refuse(w, status, why)
		case !strings.HasPrefix(r.URL.Path, "/v1/"):
			serveFile(w, r, files)
		default:
			w.Header().Set("Cache-Control", "no-store")
			limits := []chan struct{}{places}
			if delays(r.URL.Path) {
				// Those that wait for each other take no place of others.
				limits = []chan struct{}{delaying, places}
			}
			for _, limit := range limits {
				select {
				case limit <- struct{}{}:
					defer func() { <-limit }()
				case <-r.Context().Done():
					return
				}
			}
			api.ServeHTTP(w, r)
		}
	}), nil
}

// protect sets the headers that every response has.
func protect(h http.Header) {
	for name, value := range map[string]string{
		"Content-Security-Policy":      policy,
		"X-Content-Type-Options":       "nosniff",
		"X-Frame-Options":              "DENY",
		"Referrer-Policy":              "no-referrer",
		"Cross-Origin-Opener-Policy":   "same-origin",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy":           "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
		"X-Robots-Tag":                 "noindex",
	} {
		h.Set(name, value)
	}
}

// refusal is the status and the reason if a request is refused, 0 otherwise.
func refusal(r *http.Request, host string) (status int, why string) {
	switch {
	case !allowed(r.Host, host):
		return http.StatusMisdirectedRequest, "the name in the request must be localhost, an address of loopback, or what --dashboard-address names"
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "method must be GET: nothing can be changed here"
	case len(r.RequestURI) > maxURI:
		return http.StatusRequestURITooLong, fmt.Sprintf("the URI must be at most %d bytes", maxURI)
	case r.ContentLength != 0:
		return http.StatusBadRequest, "requests must not have a body"
	}
	// Browsers say where a request comes from. A link on another site may open the page; data
	// are for the page alone.
	if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" && strings.HasPrefix(r.URL.Path, "/v1/") {
		return http.StatusForbidden, "the request comes from another site"
	}
	return 0, ""
}

// allowed reports whether a request's name is one for this server: a name in the DNS may lead
// here without belonging to this server. Where all addresses are listened on, any
// address is right, since it can only be that of this machine.
func allowed(name, host string) bool {
	if bare, _, err := net.SplitHostPort(name); err == nil {
		name = bare
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if strings.EqualFold(name, "localhost") || strings.EqualFold(name, host) {
		return true
	}
	address, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	configured, err := netip.ParseAddr(host)
	if err != nil {
		return address.Unmap().IsLoopback()
	}
	return address.Unmap().IsLoopback() || configured.IsUnspecified() || configured.Unmap() == address.Unmap()
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// If the client is gone, nothing needs to be done.
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why})
}

// A file is one of the page.
type file struct {
	kind, tag string
	content   []byte
}

// kindOf is the type of a file: those of the machine do not count.
func kindOf(name string) string {
	return map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	}[path.Ext(name)]
}

func readFiles() (map[string]file, error) {
	files := map[string]file{}
	err := fs.WalkDir(static, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := static.ReadFile(name)
		kind := kindOf(name)
		if kind == "" {
			return errors.Join(err, fmt.Errorf("%s: there is no type for it", name))
		}
		files[strings.TrimPrefix(name, "static")] = file{kind, fmt.Sprintf(`"%x"`, sha256.Sum256(content)), content}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	files["/"] = files["/index.html"]
	delete(files, "/index.html")
	return files, nil
}

func serveFile(w http.ResponseWriter, r *http.Request, files map[string]file) {
	f, found := files[r.URL.Path]
	if !found {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.content))
}
