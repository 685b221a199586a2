package option

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/command/usage"
	"github.com/headgate/headgate/internal/observe/logoutput"
)

// Log are the flags of the log: those of klog, with their names and meanings, and
// --log-format.
type Log struct {
	logFormat string
	verbosity int
	modules   logoutput.Modules
	backtrace logoutput.Place

	noHeaders, directory bool

	toStderr, alsoToStderr, ignoreThreshold bool
	threshold, alsoThreshold                logoutput.Severity

	file, folder string
	maxMegabytes uint64
	onlyOwn      bool
}

func (o *Log) addLogFlags(f *pflag.FlagSet) {
	o.threshold = logoutput.Error
	f.StringVar(&o.logFormat, "log-format", "text", "log format: text or json")
	f.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log: debug messages and the differences of nginx.conf from 2; the client of the API server logs more up to 7; from 5, NGINX logs at its level debug")
	f.Var(&o.modules, "vmodule", "verbosity by source file: a list of PATTERN=N, separated by commas; the pattern is for the name of the file, or for its path if it has a slash")
	f.Var(&o.backtrace, "log_backtrace_at", "FILE:LINE of the source code whose messages are logged with a stack trace; :0 is none")
	f.BoolVar(&o.noHeaders, "skip_headers", false, "log without time and severity")
	f.BoolVar(&o.directory, "add_dir_header", false, "log the source file of each message with its directory")
	f.BoolVar(&o.toStderr, "logtostderr", true, "log to standard error, and not to files")
	f.BoolVar(&o.alsoToStderr, "alsologtostderr", false, "log to standard error as well as to files")
	f.Var(&o.alsoThreshold, "alsologtostderrthreshold", "lowest severity that --alsologtostderr writes to standard error: 0 to 3, or INFO, WARNING, ERROR or FATAL")
	f.Var(&o.threshold, "stderrthreshold", "lowest severity that is written to standard error too when the log goes to files: 0 to 3, or INFO, WARNING, ERROR or FATAL")
	f.BoolVar(&o.ignoreThreshold, "legacy_stderr_threshold_behavior", true, "apply --stderrthreshold only when the log goes to files")
	f.StringVar(&o.file, "log_file", "", "file to log to, instead of a file for each severity in --log_dir")
	f.StringVar(&o.folder, "log_dir", "", "folder to log to, in a file for each severity: PROGRAM.INFO, PROGRAM.WARNING and PROGRAM.ERROR (default: the system's temporary directory)")
	f.Uint64Var(&o.maxMegabytes, "log_file_max_size", 1800, "megabytes of a log file; a file that is full is emptied; with 0 it is not limited")
	f.BoolVar(&o.onlyOwn, "one_output", false, "log each message only to the file of its own severity, and not to those of the lower ones")
}

// fileFlags have an effect only if the log goes to files.
func fileFlags() []string {
	return []string{"log_file", "log_dir", "log_file_max_size", "one_output", "alsologtostderr", "alsologtostderrthreshold"}
}

// WarnLogFlags logs flags that have no effect because of another one.
func WarnLogFlags(f *pflag.FlagSet, log *slog.Logger) {
	without := func(name, needed string) {
		if flag := f.Lookup(name); flag.Value.String() != flag.DefValue {
			log.Warn("--" + name + " has no effect without " + needed)
		}
	}
	toStderr, legacy := f.Lookup("logtostderr").Value.String() == "true", f.Lookup("legacy_stderr_threshold_behavior").Value.String() == "true"
	if !toStderr {
		if f.Changed("log_file") && f.Changed("log_dir") {
			log.Warn("--log_dir has no effect with --log_file")
		}
		return
	}
	for _, name := range fileFlags() {
		without(name, "--logtostderr=false")
	}
	if legacy {
		without("stderrthreshold", "--logtostderr=false or --legacy_stderr_threshold_behavior=false")
	}
}

// maxLogMegabytes is the maximum of --log_file_max_size, whose bytes must be a number.
const maxLogMegabytes = 1 << 20

func (o Log) checkLog() error {
	if o.logFormat != "text" && o.logFormat != "json" {
		return fmt.Errorf("invalid value %q of --log-format: must be text or json", o.logFormat)
	}
	if o.maxMegabytes > maxLogMegabytes {
		return usage.InvalidValue(o.maxMegabytes, "log_file_max_size", fmt.Sprintf("at most %d", maxLogMegabytes))
	}
	return usage.NotNegative("v", o.verbosity)
}

// OpenLogFiles opens the files of the log; nil if there are none.
func (o Log) OpenLogFiles(program, temporary string) (*logoutput.Files, error) {
	const megabyte = 1 << 20
	switch {
	case o.toStderr:
		return nil, nil
	case o.file != "":
		return logoutput.OpenFile(o.file, o.maxMegabytes*megabyte)
	case o.folder != "":
		return logoutput.OpenFolder(o.folder, program, o.maxMegabytes*megabyte, o.onlyOwn)
	}
	return logoutput.OpenFolder(temporary, program, o.maxMegabytes*megabyte, o.onlyOwn)
}

// stderrThreshold is the lowest severity that goes to standard error.
func (o Log) stderrThreshold() logoutput.Severity {
	switch {
	case o.toStderr && o.ignoreThreshold:
		return logoutput.Info
	case !o.toStderr && o.alsoToStderr:
		return o.alsoThreshold
	}
	return o.threshold
}

// Logger logs to standard error and files, which may be nil.
func (o Log) Logger(stderr io.Writer, files *logoutput.Files) *slog.Logger {
	return logoutput.New(logoutput.Settings{
		JSON: o.logFormat == "json", Verbosity: o.verbosity, Modules: o.modules, Backtrace: o.backtrace,
		NoHeaders: o.noHeaders, Directory: o.directory,
		Stderr: stderr, Threshold: o.stderrThreshold(), Files: files,
	})
}

// DebugsNGINX reports whether NGINX logs at its level debug.
func (o Log) DebugsNGINX() bool { return o.verbosity >= 5 }

// Verbosity is that of the log, for all source files and for some.
func (o Log) Verbosity() (all int, modules logoutput.Modules) { return o.verbosity, o.modules }
