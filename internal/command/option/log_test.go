package option

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestLogFlags: where a message of each severity goes.
func TestLogFlags(t *testing.T) {
	for _, c := range []struct{ flags, stderr, file string }{
		{"", "a,b,c", ""},
		{"--stderrthreshold=2 --log_file=FOLDER/log", "a,b,c", ""},
		{"--legacy_stderr_threshold_behavior=false", "c", ""},
		{"--legacy_stderr_threshold_behavior=false --stderrthreshold=WARNING", "b,c", ""},
		{"--logtostderr=false --log_file=FOLDER/log", "c", "a,b,c"},
		{"--logtostderr=false --log_dir=FOLDER", "c", "INFO a,b,c WARNING b,c ERROR c"},
		{"--logtostderr=false --log_dir=FOLDER --one_output", "c", "INFO a WARNING b ERROR c"},
		{"--logtostderr=false", "c", "INFO a,b,c WARNING b,c ERROR c"},
		{"--logtostderr=false --alsologtostderr --log_file FOLDER/log", "a,b,c", "a,b,c"},
		{"--logtostderr=false --alsologtostderr --alsologtostderrthreshold 1 --log_file FOLDER/log", "b,c", "a,b,c"},
		{"--logtostderr=false --stderrthreshold FATAL --log_file FOLDER/log", "", "a,b,c"},
	} {
		folder := t.TempDir()
		var o Log
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.addLogFlags(f)
		if err := f.Parse(strings.Fields(strings.ReplaceAll(c.flags, "FOLDER", folder))); err != nil {
			t.Fatal(err)
		}
		files, err := o.OpenLogFiles("headgate", folder)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		log := o.Logger(&stderr, files)
		log.Info("a")
		log.Warn("b")
		log.Error("c")
		if err := files.Close(time.Minute); err != nil {
			t.Error(err)
		}
		if got := logged(stderr.String()); got != c.stderr {
			t.Errorf("%q: standard error has %s, want %s", c.flags, got, c.stderr)
		}
		if got := filesOf(t, folder); got != c.file {
			t.Errorf("%q: the files have %s, want %s", c.flags, got, c.file)
		}
	}
}

// logged are the messages of a log.
func logged(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		list = append(list, message)
	}
	return strings.Join(list, ",")
}

// filesOf are the messages in the files of a folder.
func filesOf(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	for _, name := range []string{"log", "headgate.INFO", "headgate.WARNING", "headgate.ERROR"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		_, severity, _ := strings.Cut(name, ".")
		all = append(all, strings.TrimSpace(severity+" "+logged(string(text))))
	}
	return strings.Join(all, " ")
}

// TestLogFlagsWithoutEffect: flags that need another one.
func TestLogFlagsWithoutEffect(t *testing.T) {
	wantWarnings(t, WarnLogFlags, map[string]string{
		"":                    "",
		"-v 2 --skip_headers": "",
		"--log_file x --log_file_max_size 1 --stderrthreshold 1":       "--log_file --log_file_max_size --stderrthreshold",
		"--log_file=x --logtostderr=false --stderrthreshold=1":         "",
		"--stderrthreshold 1 --legacy_stderr_threshold_behavior=false": "",
		"--log_file=x --log_dir=y --logtostderr=false":                 "--log_dir",
	})
}
