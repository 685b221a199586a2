package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A kubectl is the cluster's, with the plugin under its names.
type kubectl struct {
	h      *headgate
	folder string
}

func (h *headgate) kubectl() kubectl {
	h.t.Helper()
	path, err := headgateBuild.program()
	if err != nil {
		h.t.Fatal(err)
	}
	plugin, folder := filepath.Join(filepath.Dir(path), "kubectl-headgate"), h.t.TempDir()
	for name, program := range map[string]string{
		"kubectl": h.cluster.Program(), "kubectl-headgate": plugin, "kubectl-ingress_nginx": plugin, "kubectl_complete-headgate": plugin,
	} {
		if err := os.Symlink(program, filepath.Join(folder, name)); err != nil {
			h.t.Fatal(err)
		}
	}
	return kubectl{h, folder}
}

// command returns a command that finds kubectl and its plugins.
func (k kubectl) command(name string, args ...string) *exec.Cmd {
	c := k.h.cluster.Command(k.h.t.Context(), name, args...)
	c.Env = append(c.Env, "PATH="+k.folder+":"+os.Getenv("PATH"), "HOME="+k.folder)
	return c
}

// run returns the standard output of kubectl, which must succeed.
func (k kubectl) run(args ...string) string {
	k.h.t.Helper()
	var out, errs bytes.Buffer
	c := k.command("kubectl", args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		k.h.t.Fatalf("kubectl %q: %v: %s", args, err, errs.String())
	}
	return out.String()
}

// inPod are the flags of the plugin that find the pod.
func (k kubectl) inPod(args ...string) []string {
	return append(args, "-n", k.h.class, "--deployment", "headgate")
}

// wantOutput checks that a command prints some texts.
func (k kubectl) wantOutput(args []string, texts ...string) {
	k.h.t.Helper()
	output := k.run(args...)
	for _, text := range texts {
		if !strings.Contains(output, text) {
			k.h.t.Errorf("kubectl %q prints no %q:\n%s", args, text, output)
		}
	}
}

// kubectl and its plugin look into a pod of Headgate.
func TestPlugin(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	host := h.host("web")
	ing := h.ingress("web", host, "/", "web", "")
	ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/ssl-redirect": "yse", "nginx.ingress.kubernetes.io/rewrite-target": "/"}
	h.createIngress(ing)
	h.awaitAddress(h.runInPods(inPods{replicas: 1}), host)
	t.Cleanup(func() {
		if t.Failed() {
			h.logPods("headgate")
		}
	})
	var pod string
	for pod = range h.pods("headgate") {
	}
	k := h.kubectl()
	backend := h.class + "-web-80"

	if direct := k.run("exec", "-n", h.class, pod, "--", "/dbg", "backends", "list"); !strings.Contains(direct, backend) {
		t.Errorf("dbg lists the backends %q, want %s", direct, backend)
	}
	k.wantOutput(k.inPod("headgate", "backends", "--list"), backend)
	k.wantOutput(k.inPod("ingress-nginx", "backends", "--backend", backend, "-o", "yaml"), "name: "+backend)
	k.wantOutput(k.inPod("headgate", "certs", "--host", host), "-----BEGIN CERTIFICATE-----")
	k.wantOutput(k.inPod("headgate", "general", "-o", "yaml"), "redirect_code: ")
	k.wantOutput(k.inPod("headgate", "conf"), "worker_processes")
	k.wantOutput(k.inPod("headgate", "conf", "--host", host), host, "prefix /")
	k.wantOutput(k.inPod("headgate", "conf", "--host", host, "-o", "json"), host)
	k.wantOutput(k.inPod("headgate", "findings"), "ingress/"+h.class+"/web", "InvalidValue")
	k.wantOutput(k.inPod("headgate", "explain", "http://"+host+"/"), "ingress/"+h.class+"/web")
	k.wantOutput(k.inPod("headgate", "explain", "http://"+host+"/shop", "-o", "yaml"), "answers:")
	k.wantOutput(k.inPod("headgate", "lint", "ingresses"), "rewrite-target: ", "ssl-redirect: ")
	k.wantOutput(k.inPod("headgate", "logs"), "["+backend+"]")
	k.wantOutput([]string{"headgate", "ingresses", "-n", h.class}, "HOST+PATH", host+"/")
	k.wantOutput([]string{"headgate", "info", "-n", h.class, "--service", "headgate"}, "http 80/TCP")
	k.wantOutput(append([]string{"__complete"}, append(k.inPod("headgate", "backends"), "--backend", "")...), backend)
	k.wantStreams()
	k.wantTerminal()
}

// wantStreams checks the streams and the exit status of a command in the pod.
func (k kubectl) wantStreams() {
	k.h.t.Helper()
	var out, errs bytes.Buffer
	c := k.command("kubectl", append(k.inPod("headgate", "exec", "-i"), "--", "sh", "-c", "cat; echo failed >&2; exit 3")...)
	typed := strings.Repeat("typed\n", 100_000)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(typed), &out, &errs
	_ = c.Run()
	if c.ProcessState.ExitCode() != 3 || out.String() != typed || errs.String() != "failed\n" {
		k.h.t.Errorf("the command ended with %v, %d bytes of output (want %d) and %q", c.ProcessState, out.Len(), len(typed), errs.String())
	}
}

// wantTerminal checks that a command in the pod has a terminal of the same size.
func (k kubectl) wantTerminal() {
	k.h.t.Helper()
	inPod := "until size=$(busybox stty size) || exit; [ \"$size\" = \"33 77\" ]; do :; done; busybox tty"
	script := filepath.Join(k.folder, "session")
	text := "stty rows 33 cols 77\nexec kubectl " + strings.Join(k.inPod("headgate", "exec", "-it"), " ") + " -- sh -c '" + inPod + "'\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		k.h.t.Fatal(err)
	}
	// script makes a terminal.
	output, err := k.command("script", "--quiet", "--return", "--command", "sh "+script, os.DevNull).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "/dev/pts/") {
		k.h.t.Errorf("in a terminal: %v: %q", err, output)
	}
}
