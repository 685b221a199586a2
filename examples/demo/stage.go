package main

import (
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/headgate/headgate/test/echo"
)

// In the manifests, ${NAME_PORT} is the port of the backend of that name,
// ${NAME_CERTIFICATE} and ${NAME_KEY} are base64 of a PEM chain and key.
//
//go:embed *.yaml
var templates embed.FS

// backends are the names of the backends. Each answers with its own.
var backends = []string{"hello-1", "hello-2", "about", "shop", "cart", "apps"}

// certified are the names in the manifests and the hosts of their certificates.
var certified = map[string]string{"SHOP": "shop.localhost", "APPS": "*.apps.localhost"}

// A stage is what Headgate needs around it: backends that run, and a folder.
type stage struct {
	// folder holds manifests/, ca.crt and run/, Headgate's run directory.
	folder  string
	servers []*http.Server
}

func (s *stage) manifests() string { return filepath.Join(s.folder, "manifests") }

func newStage() (_ *stage, err error) {
	folder, err := os.MkdirTemp("", "headgate-demo-")
	if err != nil {
		return nil, fmt.Errorf("make a folder: %w", err)
	}
	s := &stage{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	// NGINX's workers may run as another user, and need the run directory.
	if err := os.Chmod(folder, 0o711); err != nil {
		return nil, fmt.Errorf("open the folder: %w", err)
	}
	values := map[string]string{}
	if err := s.startBackends(values); err != nil {
		return nil, err
	}
	if err := s.makeCertificates(values); err != nil {
		return nil, err
	}
	return s, s.writeManifests(values)
}

// close stops the backends and removes the folder.
func (s *stage) close() error {
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.folder))...)
}

func (s *stage) startBackends(values map[string]string) error {
	for _, name := range backends {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("start a backend: %w", err)
		}
		server := &http.Server{Handler: echo.Handler(name)}
		s.servers = append(s.servers, server)
		// It returns an error when the server is closed, which is expected.
		go func() { _ = server.Serve(listener) }()
		values[placeholder(name)+"_PORT"] = strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	}
	return nil
}

func placeholder(backend string) string {
	return strings.ToUpper(strings.ReplaceAll(backend, "-", "_"))
}

func (s *stage) makeCertificates(values map[string]string) error {
	authority, err := newAuthority()
	if err != nil {
		return err
	}
	for name, host := range certified {
		chain, key, err := authority.issue(host)
		if err != nil {
			return err
		}
		values[name+"_CERTIFICATE"] = base64.StdEncoding.EncodeToString(chain)
		values[name+"_KEY"] = base64.StdEncoding.EncodeToString(key)
	}
	if err := os.WriteFile(filepath.Join(s.folder, "ca.crt"), authority.pem, 0o644); err != nil {
		return fmt.Errorf("write the authority's certificate: %w", err)
	}
	return nil
}

func (s *stage) writeManifests(values map[string]string) error {
	if err := os.Mkdir(s.manifests(), 0o700); err != nil {
		return fmt.Errorf("make the manifests' folder: %w", err)
	}
	names, err := fs.Glob(templates, "*.yaml")
	if err != nil {
		return fmt.Errorf("list the manifests: %w", err)
	}
	for _, name := range names {
		text, err := templates.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a manifest: %w", err)
		}
		var unknown []string
		filled := os.Expand(string(text), func(key string) string {
			value, ok := values[key]
			if !ok {
				unknown = append(unknown, key)
			}
			return value
		})
		if unknown != nil {
			return fmt.Errorf("%s: unknown names %s", name, strings.Join(unknown, ", "))
		}
		if err := os.WriteFile(filepath.Join(s.manifests(), name), []byte(filled), 0o600); err != nil {
			return fmt.Errorf("write a manifest: %w", err)
		}
	}
	return nil
}
