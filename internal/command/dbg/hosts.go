package dbg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/headgate/headgate/internal/command/instance"
	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

func (r running) listHosts(ctx context.Context, out *bytes.Buffer, _ string) error {
	return r.list(ctx, unit.Host, func(name string) string { return name }, out)
}

func (r running) printHost(ctx context.Context, out *bytes.Buffer, name string) error {
	host, u, err := r.host(ctx, name)
	if err != nil {
		return err
	}
	return plaintext.WriteJSON(out, struct {
		Name string `json:"name"`
		dataplane.Unit
	}{host, u})
}

// host reads the host of that name, or with that alias.
func (r running) host(ctx context.Context, name string) (host string, u dataplane.Unit, err error) {
	host = strings.ToLower(name)
	if host == "" || strings.Contains(host, "/") {
		return "", u, fmt.Errorf("invalid name %q: must be a host, such as shop.example.com, *.example.com or %s", name, model.DefaultHost)
	}
	missing := fmt.Sprintf("no host %s: dbg explain http://%s/ shows what answers for it", name, name)
	u, err = r.dataPlane.Unit(ctx, unit.Host.Key(host))
	if !errors.Is(err, dataplane.ErrNotFound) {
		return host, u, err
	}
	of, err := r.unit(ctx, unit.Name.Key(host), missing)
	if err != nil {
		return "", u, err
	}
	var alias unit.PackedName
	if err := json.Unmarshal(of.Payload, &alias); err != nil {
		return "", u, fmt.Errorf("decode name %s: %w", host, err)
	}
	u, err = r.unit(ctx, unit.Host.Key(alias.Host), missing)
	return alias.Host, u, err
}

// listRoutes lists the routes of a host in their order.
func (r running) listRoutes(ctx context.Context, out *bytes.Buffer, name string) error {
	host, u, err := r.host(ctx, name)
	if err != nil {
		return err
	}
	var h unit.PackedHost
	if err := json.Unmarshal(u.Payload, &h); err != nil {
		return fmt.Errorf("decode host %s: %w", host, err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "HOST\tROUTE\tBACKEND\tINGRESS\tLOCATION\tPOLICIES")
	for _, route := range h.Routes {
		var policies []string
		for _, n := range route.Policies {
			var parts []any
			if text, ok := at(h.Policies, n); ok && json.Unmarshal(text, &parts) == nil && len(parts) > 0 {
				policies = append(policies, fmt.Sprint(parts[0]))
			}
		}
		location, _ := at(h.Locations, route.Location)
		origin, ok := at(h.Origins, route.Origin)
		ingress := "-"
		if ok {
			ingress = origin[0] + "/" + origin[1]
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", host, oneCell(matches(route)), answers(h, route), ingress, location, dash(strings.Join(policies, ",")))
	}
	return table.Flush()
}

// oneCell is a text without what would begin another cell or row: tenants choose paths.
func oneCell(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(text)
}

// at is the element of a list by its number from 1.
func at[T any](list []T, n int) (element T, ok bool) {
	if n < 1 || n > len(list) {
		return element, false
	}
	return list[n-1], true
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// matches is how requests are compared with a route.
func matches(r unit.PackedRoute) string {
	switch {
	case r.Exact != "":
		return "exact " + r.Exact
	case r.Pattern != "":
		return "pattern " + r.Pattern
	case r.Slash:
		return "prefix " + r.Prefix + "/"
	}
	return "prefix " + r.Prefix
}

// answers is what answers requests of a route.
func answers(h unit.PackedHost, r unit.PackedRoute) string {
	backend, ok := at(h.Backends, r.Backend)
	switch {
	case r.Denied:
		return "503"
	case !ok:
		return "404"
	}
	return backend
}

// printCertificate prints the chain that is shown for a name.
func (r running) printCertificate(ctx context.Context, out *bytes.Buffer, name string) error {
	hash, about, err := r.certificate(ctx, name)
	if err != nil {
		return err
	}
	u, err := r.unit(ctx, unit.Certificate.Key(hash), fmt.Sprintf("NGINX does not have the certificate of %s yet: a change is in progress", name))
	if err != nil {
		return err
	}
	var certificate struct {
		Chain string `json:"chain"`
	}
	if err := json.Unmarshal(u.Payload, &certificate); err != nil {
		return fmt.Errorf("decode the certificate of %s: %w", name, err)
	}
	out.WriteString(certificate.Chain)
	fmt.Fprintf(r.notes, "%s. Its private key is not shown.\n", plaintext.Of(about))
	return nil
}

// certificate names the certificate that is shown for a name, and says what it is.
func (r running) certificate(ctx context.Context, name string) (hash, about string, err error) {
	if name == model.DefaultHost {
		return model.DefaultCertificate, "The default certificate", nil
	}
	if name == "" || strings.ContainsAny(name, "/?#@:% ") {
		return "", "", fmt.Errorf("invalid name %q: must be a server name, such as shop.example.com", name)
	}
	// A client that has a wildcard's certificate sends a name below it.
	asked := url.URL{Scheme: "https", Host: strings.Replace(name, "*", "any-name-below", 1), Path: "/"}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	explanation, err := instance.Explain(ctx, r.dir, explain.Query{URL: asked.String()})
	if err != nil {
		return r.certificateOfNGINX(ctx, asked.Host, err)
	}
	shown := explanation.Certificate
	if shown == nil {
		return "", "", fmt.Errorf("no certificate is served for %s", name)
	}
	for _, u := range explanation.Units {
		if unit.Kind(u.Kind) == unit.Certificate {
			hash = u.Name
		}
	}
	switch {
	case shown.Default && shown.DefaultSecret != "":
		return model.DefaultCertificate, "The default certificate, of " + shown.DefaultSecret + ": " + shown.Why, nil
	case shown.Default:
		return model.DefaultCertificate, "The default certificate, which Headgate generated: " + shown.Why, nil
	case hash == "":
		return "", "", fmt.Errorf("no certificate is served for %s: %s", name, shown.Why)
	}
	return hash, "The certificate of " + shown.Secret + ": " + shown.Why, nil
}

// printConf prints nginx.conf.
func (r running) printConf(_ context.Context, out *bytes.Buffer, _ string) error {
	file, err := os.Open(filepath.Join(r.dir, "nginx.conf"))
	if err != nil {
		return fmt.Errorf("read nginx.conf: %w", err)
	}
	defer file.Close()
	if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("read nginx.conf: %w", err)
	}
	return nil
}

// listFindings lists all findings, as text one in a line.
func (r running) listFindings(ctx context.Context, out *bytes.Buffer, format string) error {
	var answer struct {
		Findings []finding.Finding `json:"findings"`
	}
	if err := r.ask(ctx, "/v1/findings", nil, &answer); err != nil {
		return err
	}
	if format == "json" {
		return plaintext.WriteJSON(out, answer)
	}
	if len(answer.Findings) == 0 {
		fmt.Fprintln(r.notes, "no findings")
	}
	for _, f := range answer.Findings {
		fmt.Fprintln(out, oneCell(f.String()))
	}
	return nil
}
