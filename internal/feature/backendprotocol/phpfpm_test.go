package backendprotocol_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// scripts are what php-fpm runs. %s is the folder.
var scripts = map[string]string{
	"index.php": `<?php
header("X-Mine: 1");
$files = [];
foreach ($_FILES as $name => $f) { $files[$name] = [$f["name"], $f["size"], $f["error"] ? "" : hash_file("sha256", $f["tmp_name"])]; }
echo json_encode(["Server" => $_SERVER, "Get" => (object)$_GET, "Post" => (object)$_POST, "Files" => (object)$files,
  "Body" => hash("sha256", file_get_contents("php://input")), "Limit" => ini_get("memory_limit")]);`,
	"sub/index.php": `<?php echo "sub";`,
	"stream.php": `<?php
echo "one\n"; flush();
for ($i = 0; $i < 30000 && !file_exists(__DIR__ . "/go"); $i++) { usleep(1000); clearstatcache(); }
echo "two\n";`,
	"large.php":  `<?php for ($i = 0; $i < 4096; $i++) { echo str_repeat(chr(97 + $i % 26), 1024); }`,
	"gone.php":   `<?php http_response_code(410); header("X-Mine: gone"); echo "gone";`,
	"away.php":   `<?php header("Location: /elsewhere", true, 302);`,
	"broken.php": `<?php header("X-Mine: broken"); nothing();`,
	"killed.php": `<?php exec("kill -9 " . getmypid());`,
	"slow.php":   `<?php sleep(600);`,
}

// startPHP runs Debian's php-fpm and returns its address and the folder of its scripts.
func startPHP(t *testing.T) (address, folder string) {
	t.Helper()
	found, err := filepath.Glob("/usr/sbin/php-fpm[0-9]*")
	if err != nil || len(found) == 0 {
		t.Fatalf("no php-fpm: `scripts/install-deps test` installs it (%v)", err)
	}
	folder = t.TempDir()
	for name, text := range scripts {
		write(t, filepath.Join(folder, name), text)
	}
	// It takes a socket that is open already, as in its own restarts.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	address = listener.Addr().String()
	conf := filepath.Join(folder, "fpm.conf")
	text := fmt.Sprintf("[global]\nerror_log = %[1]s/fpm.log\ndaemonize = no\n[one]\nlisten = %[2]s\npm = static\npm.max_children = 4\n"+
		"php_admin_value[upload_max_filesize] = 32M\nphp_admin_value[post_max_size] = 33M\nphp_admin_value[upload_tmp_dir] = %[1]s\nphp_admin_flag[display_errors] = off\n", folder, address)
	args := []string{"-n", "-F", "-y", conf}
	if os.Getuid() == 0 {
		text += "user = root\ngroup = root\n"
		args = append(args, "-R")
	}
	write(t, conf, text)
	command := exec.Command(found[len(found)-1], args...)
	command.ExtraFiles = []*os.File{socket}
	command.Env = append(os.Environ(), "FPM_SOCKETS="+address+"=3")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait()
		if log, _ := os.ReadFile(folder + "/fpm.log"); t.Failed() {
			t.Logf("php-fpm: %s%s", output.String(), log)
		}
	})
	return address, folder
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A phpHeard is what index.php says.
type phpHeard struct {
	Server, Get, Post map[string]any
	Files             map[string][3]any
	Body, Limit       string
}

func phpHears(t *testing.T, g *headgatetest.Instance, r headgatetest.Request) phpHeard {
	t.Helper()
	answer := g.Do(r).WantStatus(t, 200)
	var h phpHeard
	if err := json.Unmarshal([]byte(answer.Body), &h); err != nil || answer.Header.Get("X-Mine") != "1" {
		t.Fatalf("%v: %q %v", err, answer.Body, answer.Header)
	}
	return h
}

// TestPHP: Debian's php-fpm as users have it behind ingress-nginx, by paths to scripts and with
// one script for all paths.
func TestPHP(t *testing.T) {
	t.Parallel()
	address, folder := startPHP(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", address) +
		headgatetest.ConfigMap("files", "DOCUMENT_ROOT: "+folder, "SCRIPT_FILENAME: $document_root$fastcgi_script_name", "APP_ENV: test", "PATH_INFO: $fastcgi_path_info", "PHP_VALUE: memory_limit=77M") +
		headgatetest.ConfigMap("front", "SCRIPT_FILENAME: "+folder+"/index.php", "SCRIPT_NAME: /index.php", "PATH_INFO: $uri") +
		ingress("files", "backend-protocol: FCGI", "fastcgi-index: index.php", "fastcgi-params-configmap: files", "proxy-body-size: 50m") +
		ingress("slow", "backend-protocol: FCGI", "fastcgi-params-configmap: files", "proxy-read-timeout: 1", "proxy-next-upstream-tries: 1") +
		ingress("front", "backend-protocol: fcgi", "fastcgi-params-configmap: default/front")})
	t.Run("server", func(t *testing.T) { phpServer(t, g, folder) })
	t.Run("bodies", func(t *testing.T) { phpBodies(t, g) })
	t.Run("answers", func(t *testing.T) { phpAnswers(t, g) })
	t.Run("streams", func(t *testing.T) { phpStreams(t, g, folder) })
}

func phpServer(t *testing.T, g *headgatetest.Instance, folder string) {
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		h := phpHears(t, g, headgatetest.Request{Scheme: scheme, HTTP2: http2, Host: "files.test", Path: "/?a=1&b[]=x%20y", Header: http.Header{"Cookie": {"c=d"}, "Proxy": {"evil"}}})
		want := map[string]string{
			"SCRIPT_FILENAME": folder + "/index.php", "SCRIPT_NAME": "/index.php", "PHP_SELF": "/index.php", "DOCUMENT_ROOT": folder, "REQUEST_URI": "/?a=1&b[]=x%20y",
			"QUERY_STRING": "a=1&b[]=x%20y", "REQUEST_METHOD": "GET", "REQUEST_SCHEME": scheme, "SERVER_NAME": "files.test", "HTTP_HOST": "files.test", "APP_ENV": "test",
			"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_PROTO": scheme, "HTTP_COOKIE": "c=d", "GATEWAY_INTERFACE": "CGI/1.1",
		}
		if scheme == "https" {
			want["HTTPS"] = "on"
		}
		for name, value := range want {
			if h.Server[name] != value {
				t.Errorf("%s, HTTP/2 %v: %s is %v, want %q", scheme, http2, name, h.Server[name], value)
			}
		}
		for _, name := range []string{"HTTP_PROXY", "PATH_INFO", "REMOTE_USER"} {
			if value, is := h.Server[name]; is {
				t.Errorf("%s is %v", name, value)
			}
		}
		if _, is := h.Server["HTTPS"]; is != (scheme == "https") {
			t.Errorf("%s: HTTPS is %v", scheme, h.Server["HTTPS"])
		}
		if h.Limit != "77M" || h.Get["a"] != "1" || fmt.Sprint(h.Get["b"]) != "[x y]" {
			t.Errorf("%v, memory_limit %s", h.Get, h.Limit)
		}
	})
	// PHP itself finds the script in a longer path.
	h := phpHears(t, g, headgatetest.Request{Host: "files.test", Path: "/index.php/more/path?x"})
	if h.Server["SCRIPT_FILENAME"] != folder+"/index.php" || h.Server["SCRIPT_NAME"] != "/index.php/more/path" {
		t.Errorf("a longer path: %v", h.Server)
	}
	if r := g.Get("files.test", "/sub/").WantStatus(t, 200); r.Body != "sub" {
		t.Errorf("/sub/: %q", r.Body)
	}
	h = phpHears(t, g, headgatetest.Request{Host: "front.test", Path: "/any/p%20ath?q=1"})
	if h.Server["REQUEST_URI"] != "/any/p%20ath?q=1" || h.Server["SCRIPT_NAME"] != "/index.php" || h.Server["PATH_INFO"] != "/any/p ath" || h.Get["q"] != "1" {
		t.Errorf("one script for all paths: %v", h.Server)
	}
}

func phpBodies(t *testing.T, g *headgatetest.Instance) {
	sum := func(b []byte) string {
		s := sha256.Sum256(b)
		return hex.EncodeToString(s[:])
	}
	h := phpHears(t, g, headgatetest.Request{Method: "POST", Host: "files.test", Body: strings.NewReader("name=J%C3%BCrgen&n=2"),
		Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}})
	if h.Post["name"] != "Jürgen" || h.Post["n"] != "2" || h.Server["CONTENT_LENGTH"] != "20" {
		t.Errorf("a form: %v", h.Post)
	}
	content := bytes.Repeat([]byte("0123456789abcde\n"), 300_000)
	for _, chunked := range []bool{false, true} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", "a.bin")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(content)
		_ = form.WriteField("field", "value")
		_ = form.Close()
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			r := headgatetest.Request{Method: "POST", Scheme: scheme, HTTP2: http2, Host: "files.test", Body: bytes.NewReader(body.Bytes()),
				Header: http.Header{"Content-Type": {form.FormDataContentType()}}}
			if chunked {
				r.Body = struct{ *bytes.Buffer }{bytes.NewBuffer(body.Bytes())}
			}
			h := phpHears(t, g, r)
			if f := h.Files["file"]; f[0] != "a.bin" || f[1] != float64(len(content)) || f[2] != sum(content) || h.Post["field"] != "value" {
				t.Errorf("an upload, chunked %v: %v %v", chunked, h.Files, h.Post)
			}
		})
	}
	h = phpHears(t, g, headgatetest.Request{Method: "PUT", Host: "files.test", Body: bytes.NewReader(content)})
	if h.Body != sum(content) {
		t.Error("another body arrived")
	}
}

func phpAnswers(t *testing.T, g *headgatetest.Instance) {
	if r := g.Get("files.test", "/gone.php").WantStatus(t, 410); r.Body != "gone" || r.Header.Get("X-Mine") != "gone" {
		t.Errorf("%q %v", r.Body, r.Header)
	}
	if r := g.Get("files.test", "/away.php").WantStatus(t, 302); r.Header.Get("Location") != "/elsewhere" {
		t.Errorf("%v", r.Header)
	}
	if r := g.Get("files.test", "/large.php").WantStatus(t, 200); len(r.Body) != 4<<20 || r.Body[1024] != 'b' {
		t.Errorf("%d bytes", len(r.Body))
	}
	if r := g.Do(headgatetest.Request{Method: "HEAD", Host: "files.test"}).WantStatus(t, 200); r.Body != "" || r.Header.Get("X-Mine") != "1" {
		t.Errorf("HEAD: %q %v", r.Body, r.Header)
	}
	for path, status := range map[string]int{"/missing.php": 404, "/broken.php": 500, "/killed.php": 502} {
		g.Get("files.test", path).WantStatus(t, status)
	}
	g.Get("slow.test", "/slow.php").WantStatus(t, 504)
	phpHears(t, g, headgatetest.Request{Host: "files.test"})
}

// phpStreams: the client has what a script flushed before the script goes on.
func phpStreams(t *testing.T, g *headgatetest.Instance, folder string) {
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	response, err := client.Get("http://files.test/stream.php")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text := make([]byte, 64)
	n, err := response.Body.Read(text)
	if string(text[:n]) != "one\n" {
		t.Fatalf("%q, %v", text[:n], err)
	}
	write(t, filepath.Join(folder, "go"), "")
	var rest bytes.Buffer
	if _, err := rest.ReadFrom(response.Body); err != nil || rest.String() != "two\n" {
		t.Errorf("%q, %v", rest.String(), err)
	}
}
