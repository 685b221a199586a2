package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/text"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/survey"
)

// explainOptions are what the flags of explain say.
type explainOptions struct {
	options
	path, format string
	question     explain.Question
	cookies      []string
	// defaults lists settings that nobody set.
	defaults bool
	patience time.Duration
}

func newExplainCommand() *cobra.Command {
	var o explainOptions
	command := &cobra.Command{
		Use:   "explain URL",
		Short: "Say what becomes of a request and why",
		Long: "Explain says whose a name is, which route wins and which lose to it, which settings hold and where they come from,\n" +
			"which endpoints a backend has, and which certificate is shown. It sends no request.\n\n" +
			"With -f it reads a folder or file of manifests, with --kubeconfig or --apiserver-host a cluster. With none of these\n" +
			"it asks the controller on this machine or in this pod, and tells what NGINX's workers hold too.",
		Args: func(command *cobra.Command, args []string) error { return wrong(cobra.ExactArgs(1)(command, args)) },
		RunE: func(command *cobra.Command, args []string) error {
			o.question.URL = args[0]
			if len(o.cookies) > 0 {
				o.question.Headers = append(o.question.Headers, "Cookie: "+strings.Join(o.cookies, "; "))
			}
			return o.run(command.Context(), command.OutOrStdout())
		},
	}
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return wrong(err) })
	f := command.Flags()
	f.SortFlags = false
	f.StringVarP(&o.path, "filename", "f", "", "folder or file of manifests, or a saved dump of a cluster")
	f.StringArrayVar(&o.question.Headers, "header", nil, "'Name: value' of the request; may be given several times")
	f.StringArrayVar(&o.cookies, "cookie", nil, "'NAME=VALUE' of a cookie of the request; may be given several times")
	f.StringVar(&o.question.Method, "method", "GET", "method of the request")
	f.StringVar(&o.question.From, "from", "", "address of the client")
	f.StringVarP(&o.format, "output", "o", "text", "form of the output: text or json")
	f.BoolVar(&o.defaults, "defaults", false, "list settings that nobody set too (json has them always)")
	f.DurationVar(&o.patience, "timeout", 30*time.Second, "how long a cluster or the controller may take to answer")
	f.StringVar(&o.runDir, "run-dir", "", "the controller's run directory (default: the one for these ports in the system's temporary folder)")
	f.Uint16Var(&o.httpPort, "http-port", 80, "the controller's port for http")
	f.Uint16Var(&o.httpsPort, "https-port", 443, "the controller's port for https")
	f.StringVar(&o.healthCheckPath, "health-check-path", "/healthz", "path of the health check")
	o.addSelectionFlags(f)
	o.addKubernetesFlags(f)
	return command
}

func (o explainOptions) run(ctx context.Context, out io.Writer) error {
	if o.format != "text" && o.format != "json" {
		return wrong(fmt.Errorf("--output %s: allowed are text and json", o.format))
	}
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	explanation, err := o.explain(ctx)
	if err != nil {
		return wrong(err)
	}
	if o.format == "text" {
		return text.Write(out, &explanation, o.defaults)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(explanation)
}

func (o explainOptions) explain(ctx context.Context) (explain.Explanation, error) {
	cluster := o.kubeconfig != "" || o.apiserverHost != ""
	switch {
	case o.path != "" && cluster:
		return explain.Explanation{}, errors.New("-f reads manifests in the place of a cluster: leave out --kubeconfig and --apiserver-host")
	case o.path != "":
		return o.explainFile()
	case cluster:
		return o.explainCluster(ctx)
	}
	return askController(ctx, o.socket(), o.question)
}

// socket is the controller's.
func (o explainOptions) socket() string {
	dir := o.runDir
	if dir == "" {
		dir = nginx.DefaultRunDir(fmt.Sprintf("%d-%d", o.httpPort, o.httpsPort))
	}
	return filepath.Join(dir, "sock", "controller.sock")
}

func (o explainOptions) explainFile() (explain.Explanation, error) {
	settings, err := o.surveySettings()
	if err != nil {
		return explain.Explanation{}, err
	}
	read, err := file.Read(o.path)
	if err != nil {
		return explain.Explanation{}, err
	}
	var findings []finding.Finding
	folder := o.path
	if info, err := os.Stat(o.path); err == nil && !info.IsDir() {
		folder = filepath.Dir(o.path)
	}
	for _, part := range manifestFindings(folder, read.Problems) {
		findings = append(findings, part.Findings...)
	}
	return o.explainObjects(read.Changes, settings, findings, holders(folder, read.Files))
}

// explainObjects explains by objects that are all there is. Findings are those
// that are known already, files say which of them hold an object; nil for none.
func (o explainOptions) explainObjects(changes []source.Change, settings survey.Settings, findings []finding.Finding,
	files func(object string) []string,
) (explain.Explanation, error) {
	surveyed, err := survey.Take(changes, settings)
	if err != nil {
		return explain.Explanation{}, err
	}
	return explain.Explain(o.question, explain.Settings{
		Store: surveyed.View, Builder: build.New(settings.Features, settings.AnnotationPrefix), Features: settings.Features, BoundProfiles: surveyed.BoundProfiles,
		Findings: append(findings, surveyed.All()...), Files: files, HealthPath: o.healthCheckPath, HTTPSPort: o.httpsPort, Now: time.Now(),
	})
}

func (o explainOptions) explainCluster(ctx context.Context) (explain.Explanation, error) {
	settings, err := o.storeSettings(false)
	if err != nil {
		return explain.Explanation{}, err
	}
	if err := o.checkSelection(); err != nil {
		return explain.Explanation{}, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	changes, err := o.readCluster(ctx, settings, log)
	if err != nil {
		return explain.Explanation{}, err
	}
	return o.explainObjects(changes, survey.Settings{
		Store: settings, Features: all.Features(), AnnotationPrefix: o.annotationsPrefix,
	}, nil, nil)
}
