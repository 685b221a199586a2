package explain

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/usage"
)

var update = flag.Bool("update", false, "update the golden files")

// newProgram has the command below headgate, as the program does.
func newProgram() *cobra.Command {
	program := &cobra.Command{Use: "headgate", SilenceUsage: true, SilenceErrors: true}
	program.AddCommand(Command(release.Build{Version: "development"}))
	return program
}

// TestExplainGolden runs the commands of each case on its manifests. The sections
// after in.yaml have the arguments as their name, without "explain -f FOLDER", and
// the output as their content.
func TestExplainGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Files) < 2 || archive.Files[0].Name != "in.yaml" {
				t.Fatal("a case has in.yaml and one or more command lines")
			}
			folder := filepath.Join(t.TempDir(), "manifests")
			writeManifests(t, folder, archive.Files[0].Data)
			for i, f := range archive.Files[1:] {
				got := runExplain(t, folder, f.Name)
				if *update {
					archive.Files[i+1].Data = []byte(got)
				} else if got != string(f.Data) {
					t.Errorf("%s: got\n%s\nwant\n%s\n(go test -update writes it)", f.Name, got, f.Data)
				}
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// runExplain returns the output of the command, or its error.
func runExplain(t *testing.T, folder, line string) string {
	t.Helper()
	args := []string{"explain", "-f", folder}
	for i, quoted := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, quoted)
		} else {
			args = append(args, strings.Fields(quoted)...)
		}
	}
	var out, wrong bytes.Buffer
	command := newProgram()
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&wrong)
	if err := command.ExecuteContext(t.Context()); err != nil {
		return fmt.Sprintf("status %d: %s\n", usage.Report(&wrong, "headgate", err), strings.TrimSpace(wrong.String()))
	}
	if !strings.Contains(line, "-o json") {
		for l := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); n > 100 {
				t.Errorf("a line of %d columns: %s", n, l)
			}
		}
	}
	return unsteady.ReplaceAllString(out.String(), "${1}…")
}

// unsteady matches what any new setting changes: the names of profiles, and the
// versions of units. Certificates are generated for each run.
var unsteady = regexp.MustCompile(`(\bp_|"version": "|"kind": "certificate",\n +"name": ")[0-9a-f]+`)

// writeManifests writes the documents into a folder. A TestCertificate becomes
// a TLS Secret.
func writeManifests(t *testing.T, folder string, data []byte) {
	t.Helper()
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var c testCertificate
		if err := yaml.Unmarshal(document, &c); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if c.Kind == "TestCertificate" {
			var err error
			if document, err = yaml.Marshal(c.secret(t)); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, document)
	}
	if err := os.WriteFile(filepath.Join(folder, "in.yaml"), bytes.Join(all, []byte("\n---\n")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A testCertificate describes the certificate of a TLS Secret.
type testCertificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Names             []string  `json:"names"`
	From              time.Time `json:"from"`
	Until             time.Time `json:"until"`
}

func (c testCertificate) secret(t *testing.T) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: c.Names, NotBefore: c.From, NotAfter: c.Until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: c.ObjectMeta, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		},
	}
}

// TestExplainUsage: invalid arguments are reported, with status 2.
func TestExplainUsage(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "manifests")
	writeManifests(t, folder, []byte("{}"))
	for line, want := range map[string]string{
		"":                                    "accepts 1 arg",
		"http://a.test http://b.test":         "accepts 1 arg",
		"ftp://a.test/":                       "must be http or https",
		"http://a.test:x/":                    "is not a host with an optional port",
		"http://user@a.test/":                 "is not a host with an optional port",
		"http://a.test/ -o yaml":              "must be text or json",
		"http://a.test/ --from here":          "must be an IP address",
		"http://a.test/ --header nothing":     "must be 'Name: value'",
		"http://a.test/ --kubeconfig x":       "or --kubeconfig",
		"http://a.test/ --configmap x":        "NAMESPACE/NAME",
		"http://a.test/ --no-such-flag":       "unknown flag",
		"http://a.test/ --filename /nonesuch": "no such file",
	} {
		if got := runExplain(t, folder, line); !strings.HasPrefix(got, "status 2: ") || !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", line, got, want)
		}
	}
	// Without a source the controller is queried, which does not run here.
	command := newProgram()
	command.SetArgs([]string{"explain", "--run-dir", t.TempDir(), "http://a.test/"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "no controller listens on") {
		t.Errorf("without a controller: %v", err)
	}
}

// TestExplainFlags: a flag that explain shares with the controller has the same
// default.
func TestExplainFlags(t *testing.T) {
	var o option.Options
	controller := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.Add(controller)
	shared := 0
	Command(release.Build{}).Flags().VisitAll(func(f *pflag.Flag) {
		if of := controller.Lookup(f.Name); of != nil {
			shared++
			if of.DefValue != f.DefValue {
				t.Errorf("--%s is %q here and %q there", f.Name, f.DefValue, of.DefValue)
			}
		}
	})
	if shared < 15 {
		t.Errorf("%d flags are the controller's too", shared)
	}
}
