package dbg

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/adminapi/backendview"
	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

func (r running) listBackends(ctx context.Context, out *bytes.Buffer, _ string) error {
	return r.list(ctx, unit.Backend, backendview.Name, out)
}

func (r running) printBackends(ctx context.Context, out *bytes.Buffer, _ string) error {
	roles, err := r.roles(ctx)
	if err != nil {
		return err
	}
	backends := []backendview.Backend{}
	err = r.each(ctx, unit.Backend, func(key string, u dataplane.Unit) error {
		b, err := backendview.From(key, u.Version, u.Payload, roles)
		backends = append(backends, b)
		return err
	})
	if err != nil {
		return err
	}
	return plaintext.WriteJSON(out, backends)
}

func (r running) printBackend(ctx context.Context, out *bytes.Buffer, name string) error {
	key, err := r.backend(ctx, name)
	if err != nil {
		return err
	}
	u, err := r.unit(ctx, unit.Backend.Key(key), "no backend "+name+" in NGINX")
	if err != nil {
		return err
	}
	roles, err := r.roles(ctx)
	if err != nil {
		return err
	}
	b, err := backendview.From(key, u.Version, u.Payload, roles)
	if err != nil {
		return err
	}
	return plaintext.WriteJSON(out, b)
}

// backend is the key of the backend of that name, or with that key.
func (r running) backend(ctx context.Context, name string) (string, error) {
	keys, err := r.names(ctx, unit.Backend)
	if err != nil {
		return "", err
	}
	var found []string
	for _, key := range keys {
		if key == name {
			return key, nil
		}
		if backendview.Name(key) == name {
			found = append(found, key)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no backend %s: dbg backends list shows all", name)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d backends have the name %s: use one of %s", len(found), name, strings.Join(found, ", "))
}

// roles are what hosts use backends for.
func (r running) roles(ctx context.Context) (backendview.Roles, error) {
	roles := backendview.Roles{}
	err := r.each(ctx, unit.Host, func(name string, u dataplane.Unit) error {
		if err := roles.Add(u.Payload); err != nil {
			return fmt.Errorf("host %s: %w", name, err)
		}
		return nil
	})
	return roles, err
}

// printGlobals prints the settings of all hosts.
func (r running) printGlobals(ctx context.Context, out *bytes.Buffer, _ string) error {
	u, err := r.unit(ctx, unit.GlobalsKey, "NGINX has no settings yet")
	if err != nil {
		return err
	}
	return json.Indent(out, append(u.Payload, '\n'), "", "  ")
}
