package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
)

// A control serves the requests of tests over HTTP on a unix socket, one at a
// time:
//
//	POST /components/NAME/stop       kill it
//	POST /components/NAME/start      start it and wait until it is ready
//	POST /components/NAME/pause      freeze it before the answer: connections stay open, nothing answers
//	POST /components/NAME/resume
//	POST /node/stop                  kill the kubelet, containerd and all pods
//	POST /node/start                 start them again, and wait until the node is ready
//	POST /snapshots/NAME/save        keep a copy of all objects; the API server is away meanwhile
//	POST /snapshots/NAME/restore     go back to it, and restart all clients of the API server
//	POST /images                     load an image, described by the body (see image)
//	POST /archives                   load all images of the body, an archive of OCI or Docker
//
// The answer is 204, or 500 with what went wrong.
type control struct {
	mu      sync.Mutex
	cluster *cluster
}

var snapshotName = regexp.MustCompile(`^[a-z0-9-]+$`)

// serveControl begins to serve, and returns.
func serveControl(socket string, c *cluster) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listening for control: %w", err)
	}
	control := &control{cluster: c}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /components/{name}/{action}", control.handle(control.component))
	mux.HandleFunc("POST /node/stop", control.handle(func(*http.Request) error { return c.stopNode() }))
	mux.HandleFunc("POST /node/start", control.handle(func(r *http.Request) error { return c.startNode(r.Context()) }))
	mux.HandleFunc("POST /snapshots/{name}/{action}", control.handle(control.snapshot))
	mux.HandleFunc("POST /images", control.handle(control.image))
	mux.HandleFunc("POST /archives", control.handle(control.archive))
	go func() { c.died <- fmt.Errorf("serving control: %w", http.Serve(listener, mux)) }()
	return nil
}

func (c *control) handle(do func(*http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := do(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func (c *control) component(r *http.Request) error {
	one, err := c.cluster.named(r.PathValue("name"))
	if err != nil {
		return err
	}
	switch action := r.PathValue("action"); action {
	case "stop":
		return one.end(syscall.SIGKILL)
	case "start":
		return c.cluster.run(r.Context(), one)
	case "pause":
		return one.pause()
	case "resume":
		return one.signal(syscall.SIGCONT)
	default:
		return fmt.Errorf("no action %q", action)
	}
}

func (c *cluster) named(name string) (*component, error) {
	for _, one := range append(c.clients(), c.etcd, c.api) {
		if one.name == name {
			return one, nil
		}
	}
	return nil, fmt.Errorf("no component %q", name)
}

func (c *control) snapshot(r *http.Request) error {
	name := r.PathValue("name")
	if !snapshotName.MatchString(name) {
		return fmt.Errorf("invalid name of a snapshot: %q", name)
	}
	copied := filepath.Join(c.cluster.dir, "snapshots", name)
	switch action := r.PathValue("action"); action {
	case "save":
		return c.cluster.save(r.Context(), copied)
	case "restore":
		return c.cluster.restore(r.Context(), copied)
	default:
		return fmt.Errorf("no action %q", action)
	}
}

func (c *control) image(r *http.Request) error {
	if !c.cluster.pods {
		return errors.New("a cluster without pods can't load images")
	}
	var i image
	if err := json.NewDecoder(r.Body).Decode(&i); err != nil {
		return fmt.Errorf("reading the image's description: %w", err)
	}
	return c.cluster.loadImage(r.Context(), i)
}

func (c *control) archive(r *http.Request) error {
	if !c.cluster.pods {
		return errors.New("a cluster without pods can't load images")
	}
	return c.cluster.importImages(r.Context(), r.Body)
}

func (c *cluster) save(ctx context.Context, to string) error {
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("there is a snapshot %s already", filepath.Base(to))
	}
	if err := c.stopStore(); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(c.etcdDir())); err != nil {
		return fmt.Errorf("copying etcd's data: %w", err)
	}
	return c.startStore(ctx)
}

func (c *cluster) restore(ctx context.Context, from string) error {
	if _, err := os.Stat(from); err != nil {
		return fmt.Errorf("no such snapshot: %w", err)
	}
	if err := c.stopStore(); err != nil {
		return err
	}
	if err := os.RemoveAll(c.etcdDir()); err != nil {
		return fmt.Errorf("removing etcd's data: %w", err)
	}
	if err := os.CopyFS(c.etcdDir(), os.DirFS(from)); err != nil {
		return fmt.Errorf("copying etcd's data: %w", err)
	}
	if err := c.startStore(ctx); err != nil {
		return err
	}
	// Their caches have versions that the restored API server never had.
	for _, client := range c.clients() {
		if err := client.end(syscall.SIGKILL); err != nil {
			return err
		}
		if err := client.start(); err != nil {
			return err
		}
	}
	for _, client := range c.clients() {
		if err := c.wait(ctx, client); err != nil {
			return err
		}
	}
	return nil
}
