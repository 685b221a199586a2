package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// asProcess has the instance run on the node, and not in a pod. The caller says why.
func (h *headgate) asProcess() { h.process, h.address = true, clustertest.NodeAddress }

// kubeconfig is a file for a process.
func (h *headgate) kubeconfig() string {
	h.t.Helper()
	if h.account == "" {
		return h.cluster.Kubeconfig()
	}
	token := must[*authenticationv1.TokenRequest](h)(h.cluster.Client().CoreV1().ServiceAccounts(h.class).CreateToken(
		h.t.Context(), h.account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	return h.writeKubeconfig(token.Status.Token)
}

// startProcess starts the controller on the node. Its logs go to files: NGINX may outlive it.
func (h *headgate) startProcess() {
	h.t.Helper()
	path, err := headgateBuild.program()
	if err != nil {
		h.t.Fatal(err)
	}
	// Not the test's context: it ends before the controller gets SIGTERM.
	h.cmd = h.cluster.Command(context.Background(), path, append([]string{"--kubeconfig", h.kubeconfig(), "--run-dir", filepath.Join(h.dir, "run")}, h.args...)...)
	h.cmd.Env = append(h.cmd.Env, h.env...)
	// Should the test process die, the controller ends its NGINX.
	h.cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM
	h.cmd.Stdout, h.cmd.Stderr = h.file("access.log"), h.file("headgate.log")
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	cmd, ended := h.cmd, make(chan struct{})
	h.ended = ended
	go func() {
		defer close(ended)
		// ProcessState has the exit status.
		_ = cmd.Wait()
		h.code = cmd.ProcessState.ExitCode()
	}()
}

func (h *headgate) file(name string) *os.File {
	h.t.Helper()
	file, err := os.OpenFile(filepath.Join(h.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { file.Close() })
	return file
}

// stopProcess ends the controller by SIGTERM.
func (h *headgate) stopProcess() {
	h.t.Helper()
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-h.ended:
	case <-time.After(2 * timeout):
		h.t.Error("headgate did not end on SIGTERM")
		// Makes it log the stacks of its goroutines.
		_ = h.cmd.Process.Signal(syscall.SIGQUIT)
		<-h.ended
		h.orphaned = true
	}
	h.cmd = nil
}

// kill ends the controller at once; its NGINX goes on.
func (h *headgate) kill() {
	h.t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		h.t.Fatal(err)
	}
	<-h.ended
	h.cmd, h.orphaned = nil, true
}

// endOrphan kills the process group of an NGINX without a controller.
func (h *headgate) endOrphan() {
	text, err := os.ReadFile(filepath.Join(h.dir, "run", "nginx.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		h.t.Errorf("NGINX's process ID: %v", err)
		return
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}

// writeKubeconfig writes a kubeconfig whose user has a token.
func (h *headgate) writeKubeconfig(token string) string {
	h.t.Helper()
	config := h.cluster.Config()
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: config.Host, CertificateAuthorityData: config.CAData, CertificateAuthority: config.CAFile}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test"}},
		CurrentContext: "test",
	}, filepath.Join(h.dir, "kubeconfig")); err != nil {
		h.t.Fatal(err)
	}
	return filepath.Join(h.dir, "kubeconfig")
}
