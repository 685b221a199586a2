// Package explain is the command "explain": it reads manifests or a cluster, or queries the
// running controller.
//
// It knows where objects come from and the formats of output. How a request is handled, and
// why, is for internal/explain.
package explain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/command/instance"
	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/explain/text"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file"
)

// flags are the flags of explain.
type flags struct {
	build release.Build
	selection.Flags
	path, format string
	// runDir, httpPort and httpsPort say which controller is queried.
	runDir              string
	httpPort, httpsPort uint16
	healthCheckPath     string

	query   explain.Query
	cookies []string
	// defaults lists settings with default values too.
	defaults bool
	timeout  time.Duration
	// findRunning: no flag says which controller is queried.
	findRunning bool
}

// Command is explain.
func Command(build release.Build) *cobra.Command {
	o := flags{build: build}
	command := &cobra.Command{
		Use:   "explain URL",
		Short: "Explain how a request is handled",
		Long: "Explain shows which host a name belongs to, which route wins and which ones lose, which settings apply and where they\n" +
			"come from, which endpoints a backend has, and which certificate is served. It does not send the request.\n\n" +
			"With -f it reads a folder or file of manifests, with --kubeconfig or --apiserver-host a cluster. Without these flags\n" +
			"it queries the controller on this machine or in this pod, and also shows the state of NGINX's workers.",
		Args: func(command *cobra.Command, args []string) error {
			return usage.Wrong(cobra.ExactArgs(1)(command, args))
		},
		RunE: func(command *cobra.Command, args []string) error {
			o.query.URL = args[0]
			if len(o.cookies) > 0 {
				o.query.Headers = append(o.query.Headers, "Cookie: "+strings.Join(o.cookies, "; "))
			}
			f := command.Flags()
			o.findRunning = !f.Changed("run-dir") && !f.Changed("http-port") && !f.Changed("https-port")
			return o.run(command.Context(), command.OutOrStdout())
		},
	}
	usage.ExplainWrongFlags(command)
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&o.path, "filename", "f", "", "folder or file of manifests, or a saved dump of a cluster")
	f.StringArrayVar(&o.query.Headers, "header", nil, "'Name: value' of the request; can be repeated")
	f.StringArrayVar(&o.cookies, "cookie", nil, "'NAME=VALUE' of a cookie of the request; can be repeated")
	f.StringVar(&o.query.Method, "method", "GET", "method of the request")
	f.StringVar(&o.query.From, "from", "", "address of the client")
	f.StringVarP(&o.format, "output", "o", "text", "output format: text or json")
	f.BoolVar(&o.defaults, "defaults", false, "list settings with default values too (json always has them)")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "time limit for a cluster or the controller")
	f.StringVar(&o.runDir, "run-dir", "", "the controller's run directory (default: that of the only controller of this user, or of the one with these ports)")
	f.Uint16Var(&o.httpPort, "http-port", 80, "the controller's port for http")
	f.Uint16Var(&o.httpsPort, "https-port", 443, "the controller's port for https")
	f.StringVar(&o.healthCheckPath, "health-check-path", "/healthz", "path of the health check")
	o.Flags.Add(f)
	return command
}

func (o flags) run(ctx context.Context, out io.Writer) error {
	if o.format != "text" && o.format != "json" {
		return usage.Wrong(fmt.Errorf("invalid value %q of --output: must be text or json", o.format))
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	explanation, err := o.explain(ctx)
	if err != nil {
		return usage.Wrong(err)
	}
	if o.format == "text" {
		return text.Write(out, &explanation, o.defaults)
	}
	var b bytes.Buffer
	if err := plaintext.WriteJSON(&b, explanation); err != nil {
		return err
	}
	_, err = io.WriteString(out, plaintext.Of(b.String()))
	return err
}

func (o flags) explain(ctx context.Context) (report.Explanation, error) {
	if err := o.CheckFile(o.path); err != nil {
		return report.Explanation{}, err
	}
	switch {
	case o.path != "":
		return o.explainFile()
	case o.IsNamed():
		return o.explainCluster(ctx)
	}
	dir := cmp.Or(o.runDir, instance.Default(o.httpPort, o.httpsPort))
	if o.findRunning {
		found, err := instance.Directory("")
		switch {
		case err == nil:
			dir = found
		case !errors.Is(err, instance.ErrNoController):
			return report.Explanation{}, err
		}
	}
	return instance.Explain(ctx, dir, o.query)
}

func (o flags) explainFile() (report.Explanation, error) {
	settings, err := o.Snapshot(true)
	if err != nil {
		return report.Explanation{}, err
	}
	read, err := file.Read(o.path)
	if err != nil {
		return report.Explanation{}, err
	}
	var findings []finding.Finding
	folder := o.path
	if info, err := os.Stat(o.path); err == nil && !info.IsDir() {
		folder = filepath.Dir(o.path)
	}
	for _, part := range selection.ManifestFindings(folder, read.Problems) {
		findings = append(findings, part.Findings...)
	}
	return o.explainObjects(read.Changes, settings, findings, selection.Holders(folder, read.Files))
}

// explainObjects explains by the given objects only. findings are those already
// known. files returns the files that contain an object; it may be nil.
func (o flags) explainObjects(changes []source.Change, settings snapshot.Settings, findings []finding.Finding,
	files func(object string) []string,
) (report.Explanation, error) {
	snap, err := snapshot.Build(changes, settings)
	if err != nil {
		return report.Explanation{}, err
	}
	return explain.Explain(o.query, explain.Settings{
		Store: snap.View, Builder: build.New(settings.Features, settings.AnnotationPrefix), Features: settings.Features, BoundProfiles: snap.BoundProfiles,
		Findings: append(findings, snap.All()...), Files: files, HealthPath: o.healthCheckPath, HTTPSPort: o.httpsPort, Now: time.Now(),
	})
}

func (o flags) explainCluster(ctx context.Context) (report.Explanation, error) {
	settings, err := o.Snapshot(false)
	if err != nil {
		return report.Explanation{}, err
	}
	changes, err := o.ReadCluster(ctx, "headgate-explain/"+o.build.Version, settings.Store)
	if err != nil {
		return report.Explanation{}, err
	}
	return o.explainObjects(changes, settings, nil, nil)
}
