package dbg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// edges are those of a control.
type edges struct {
	Edges []adminapi.Edge `json:"edges"`
}

// listEdges lists the edges of a control.
func (r running) listEdges(ctx context.Context, out *bytes.Buffer, format string) error {
	var text json.RawMessage
	if err := r.ask(ctx, "/v1/edges", nil, &text); err != nil {
		return err
	}
	if format == "json" {
		_, err := out.Write(text)
		return err
	}
	var answer edges
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("read the edges: %w", err)
	}
	if len(answer.Edges) == 0 {
		fmt.Fprintln(r.notes, "no edge is connected")
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tGROUP\tSTATE\tFINDINGS\tNGINX\tRELEASE\tCONNECTED SINCE")
	for _, e := range answer.Edges {
		cell := func(text string) string { return plaintext.Of(oneCell(dash(text))) }
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", cell(e.Name), cell(e.Group), cell(e.State()),
			len(e.Findings)+e.MoreFindings, cell(e.NGINX), cell(e.Release), e.Since.UTC().Format(time.RFC3339))
	}
	return table.Flush()
}

// where adds to an error why there is no NGINX, if this is a control.
func (r running) where(ctx context.Context, err error) error {
	if !errors.Is(err, dataplane.ErrUnreachable) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if r.ask(ctx, "/v1/edges", nil, &edges{}) != nil {
		return err
	}
	return errors.New("this is a control, and NGINX runs in its edges: ask the Pod of one (dbg edges lists them)")
}

// certificateOfNGINX names the certificate that NGINX shows for a name, where the controller does not say.
func (r running) certificateOfNGINX(ctx context.Context, name string, because error) (hash, about string, err error) {
	about = "The certificate that NGINX shows. Of which Secret it is, is not known (" + because.Error() + ")"
	names := router.New(router.Settings{Lookup: func(key unit.Key) (unit.Unit, bool) {
		u, failed := r.dataPlane.Unit(ctx, key)
		if failed != nil && !errors.Is(failed, dataplane.ErrNotFound) {
			err = failed
		}
		return unit.Unit{Key: key, Version: u.Version, Payload: u.Payload}, failed == nil
	}})
	found, known := names.Certificate(strings.ToLower(name))
	if err != nil {
		return "", "", err
	}
	if !known || found.Certificate == "" {
		return model.DefaultCertificate, about, nil
	}
	return found.Certificate, about, nil
}
