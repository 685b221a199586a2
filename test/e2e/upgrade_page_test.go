package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A block has commands of the document.
type block struct {
	section, commands string
	ran               bool
}

// readPage returns the blocks of shell commands of a page.
func readPage(t *testing.T, path string) (page []*block) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	section, open := "", false
	for line := range strings.Lines(string(text)) {
		words := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "## "):
			section = strings.TrimPrefix(words, "## ")
		case words == "```sh":
			page, open = append(page, &block{section: section}), true
		case words == "```":
			open = false
		case open:
			page[len(page)-1].commands += line
		}
	}
	if len(page) == 0 {
		t.Fatalf("%s has no commands", path)
	}
	return page
}

// block is one of a section.
func (u *upgrade) block(section string, index int) *block {
	u.t.Helper()
	for _, b := range u.page {
		if b.section != section {
			continue
		}
		if index == 0 {
			return b
		}
		index--
	}
	u.t.Fatalf("the page has too few commands in %q", section)
	return nil
}

// run runs the commands of a block, which must print some texts.
func (u *upgrade) run(section string, index int, texts ...string) {
	u.t.Helper()
	b := u.block(section, index)
	b.ran = true
	output := u.shell(b.commands)
	for _, text := range texts {
		if !strings.Contains(output, text) {
			u.t.Errorf("%s: no %q in the output of\n%s\n%s", section, text, b.commands, output)
		}
	}
}

// shell runs commands, of which none may fail, and returns what they print.
func (u *upgrade) shell(commands string) string {
	u.t.Helper()
	began := time.Now()
	c := u.kubectl.command("bash", "-euo", "pipefail", "-c", commands)
	c.Dir = u.dir
	output, err := c.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%v:\n%s\n%s", err, commands, output)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(commands), "\n")
	u.t.Logf("%v: %s", time.Since(began).Round(time.Millisecond), first)
	return string(output)
}

func (u *upgrade) wantAllRan() {
	u.t.Helper()
	for _, b := range u.page {
		if !b.ran {
			u.t.Errorf("these commands of the page were not run:\n%s", b.commands)
		}
	}
}

// createCharts creates both charts in a folder, by their names in the document.
func createCharts(t *testing.T, dir string) {
	t.Helper()
	for _, chart := range []string{"ingress-nginx/ingress-nginx", "deploy/charts/headgate"} {
		if err := os.CopyFS(filepath.Join(dir, chart), os.DirFS(filepath.Join(charts, "headgate"))); err != nil {
			t.Fatal(err)
		}
	}
	edit := func(file string, change func(string) string) {
		path := filepath.Join(dir, "ingress-nginx/ingress-nginx", file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := change(string(text))
		if changed == string(text) {
			t.Fatalf("nothing to change in %s", file)
		}
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("Chart.yaml", strings.NewReplacer(
		"name: headgate\n", "name: ingress-nginx\n", "\nversion: 0.1.0\n", "\nversion: 4.15.1\n", "appVersion: v0.1.0\n", "appVersion: v1.15.1\n",
	).Replace)
	edit("values.yaml", strings.NewReplacer(
		"image: headgate/headgate\n", "image: ingress-nginx/controller\n",
		"image: headgate/headgate-certgen\n        repository: \"\"\n        tag: \"\"\n",
		"image: ingress-nginx/kube-webhook-certgen\n        repository: \"\"\n        tag: v1.6.9\n",
		"enableMimalloc: false", "enableMimalloc: true",
		"/etc/ingress-controller\n    readOnlyRootFilesystem: true", "/etc/ingress-controller\n    readOnlyRootFilesystem: false",
	).Replace)
	edit("templates/_names.tpl", strings.NewReplacer(`"ghcr.io"`, `"registry.k8s.io"`).Replace)
	edit("templates/_roles.tpl", func(text string) string {
		role, _, _ := strings.Cut(text, `{{- /* What Headgate reads`)
		return role + ingressNginxRules
	})
}

// ingressNginxRules are the roles of ingress-nginx's chart.
const ingressNginxRules = `{{- define "headgate.servedRules" -}}
- {apiGroups: [""], resources: [services], verbs: [get, list, watch]}
- {apiGroups: [networking.k8s.io], resources: [ingresses, ingressclasses], verbs: [get, list, watch]}
- {apiGroups: [networking.k8s.io], resources: [ingresses/status], verbs: [update]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch, get]}
{{- end }}
{{- define "headgate.clusterRules" -}}
- {apiGroups: [""], resources: [configmaps, endpoints, nodes, pods, secrets, namespaces], verbs: [list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [list, watch]}
- {apiGroups: [""], resources: [nodes], verbs: [get]}
{{- end }}
{{- define "headgate.ownRules" -}}
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
- {apiGroups: [""], resources: [configmaps, pods, secrets, endpoints], verbs: [get, list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [{{ include "headgate.electionID" . }}], verbs: [get, update]}
{{- end }}
{{- define "headgate.besideRules" -}}
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch]}
{{- end }}
`
