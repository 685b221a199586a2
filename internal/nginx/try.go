package nginx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"
)

// tryTimeout bounds one try, which takes some hundredths of a second.
const tryTimeout = 20 * time.Second

// A Trial is lines of the http block and of one location in a folder, and the files that
// they name there. The names must say what is in the files.
type Trial struct {
	// Namespace is the one whose share of the tries it takes.
	Namespace string
	Lines     func(folder string) (http, location []string)
	Files     map[string][]byte
	// Outside is set where the result depends on other files, or on names; see ForgetOutside.
	Outside bool
}

// key is the same for the same lines.
func (t Trial) key() string {
	http, location := t.Lines("")
	return strings.Join(http, "\n") + "\n\n" + strings.Join(location, "\n")
}

// Tried is the result of an earlier Try, if there was one.
func (p *Process) Tried(t Trial) (result error, known bool) {
	return p.tried.result(t.key())
}

// Try tests lines alone, in a configuration that has nothing else. It returns nil, a
// *ConfError, or the reason why it can't say: too many tries of the namespace, or what
// another try may be without.
func (p *Process) Try(ctx context.Context, t Trial) error {
	key := t.key()
	if result, known := p.tried.result(key); known {
		return result
	}
	if err := p.tried.take(t.Namespace, time.Now()); err != nil {
		return err
	}
	began := time.Now()
	err := p.try(ctx, t)
	p.tried.took(t.Namespace, time.Since(began))
	var rejected *ConfError
	if err != nil && !errors.As(err, &rejected) {
		return err
	}
	p.tried.keep(t.Namespace, key, t.Outside, err)
	return err
}

// OwnLog is the name of a log in the run directory that a directive has, empty if it has none.
func (p *Process) OwnLog(line string) string { return p.ownLog([]string{line}) }

// Scarce reports whether NGINX could not test the configuration for want of memory, files, processes or room.
func (e *ConfError) Scarce() bool { return scarce.MatchString(e.Reason) }

// ForgetOutside has lines tested again whose results depend on what is outside of their Trials.
func (p *Process) ForgetOutside() { p.tried.forgetOutside() }

// Outside reports whether NGINX rejects the configuration because of a file that it can't open, or a name without
// an address.
func (e *ConfError) Outside() bool {
	return unresolved.MatchString(e.Reason) || unopened.MatchString(e.Reason)
}

func (p *Process) try(ctx context.Context, t Trial) (err error) {
	dir, err := os.MkdirTemp("", "headgate-try-")
	if err != nil {
		return fmt.Errorf("try a configuration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var conf strings.Builder
	for _, file := range p.options.Capabilities.Modules {
		fmt.Fprintf(&conf, "load_module %q;\n", file)
	}
	fmt.Fprintf(&conf, "pid pid;\nevents {}\nhttp {\n access_log off;\n")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, " %s_temp_path %s;\n", kind, kind)
	}
	http, location := t.Lines(dir)
	if name := p.ownLog(append(slices.Clone(http), location...)); name != "" {
		return &ConfError{Reason: fmt.Sprintf("%q is in the directory of its own files", name)}
	}
	fmt.Fprintf(&conf, "%s\nserver {\nlisten unix:%s/socket;\nlocation / {\n%s\n}\n}\n}\n", strings.Join(http, "\n"), dir, strings.Join(location, "\n"))
	file := filepath.Join(dir, "nginx.conf")
	files := map[string][]byte{file: []byte(conf.String())}
	for name, content := range t.Files {
		files[filepath.Join(dir, name)] = content
	}
	for name, content := range files {
		if err := rundir.WriteFile(name, content); err != nil {
			return fmt.Errorf("try a configuration: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	err = run(ctx, p.options.Capabilities.Binary, file, p.options.AccessLog, "-p", dir, "-t", "-q")
	var rejected *ConfError
	if !errors.As(err, &rejected) {
		return err
	}
	inFolder := strings.Contains(rejected.Reason, dir)
	// The folder has another name each time.
	reason := strings.ReplaceAll(rejected.Reason, dir+"/", "")
	faulty := rejected.File != "" || withoutPlace.MatchString(reason) || badLog.MatchString(reason) && !inFolder
	if !faulty || scarce.MatchString(reason) || unresolved.MatchString(reason) {
		return fmt.Errorf("try a configuration: NGINX can't test it: %s", reason)
	}
	return &ConfError{Reason: reason}
}

// logFile is a line with the file of a log.
var logFile = regexp.MustCompile(`^(?:access_log|error_log) (/[^ ;]+)`)

// ownLog is the name of a log in the run directory, also by symbolic links, empty if lines have none. NGINX
// creates logs and appends to them even when it tests a configuration: lines of requests would be in its
// configuration, or in Lua.
func (p *Process) ownLog(lines []string) string {
	if p.options.Dir == nil {
		return ""
	}
	for _, line := range lines {
		found := logFile.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		path, err := filepath.EvalSymlinks(found[1])
		if err != nil {
			// NGINX creates no folders. filepath.Dir would take "link/.." for the folder of the link.
			path, err = filepath.EvalSymlinks(found[1][:strings.LastIndexByte(found[1], '/')+1])
		}
		if own := p.options.Dir.Path(); err == nil && (path == own || strings.HasPrefix(path, own+"/")) {
			return found[1]
		}
	}
	return ""
}

// scarce is a failure of a system call for want of memory, files, processes or room, which is
// not the configuration's fault: EIO, EAGAIN, ENOMEM, ENFILE, EMFILE, ENOSPC and EDQUOT. What
// directives say of themselves begins with a quote. All that is a directive's fault has its
// place in a file besides, but for withoutPlace and badLog.
var scarce = regexp.MustCompile(`^[a-z0-9_]+\(.* failed \((?:5|11|12|23|24|28|122): [^)]*\)$`)

// badLog is a log that can't be opened, which NGINX does when it has read all files: EPERM, ENOENT, ENXIO,
// EACCES, ENOTDIR, EISDIR, ENAMETOOLONG, EROFS and ELOOP.
var badLog = regexp.MustCompile(`^open\(\) "[^"]*" failed \((?:1|2|6|13|20|21|30|36|40): [^)]*\)$`)

// unopened is any file that can't be opened when NGINX has read its configuration: a log.
var unopened = regexp.MustCompile(`^open\(\) "[^"]*" failed \(`)

// unresolved is a DNS name without an address, which it may have later.
var unresolved = regexp.MustCompile(`^host not found in `)

// withoutPlace is what OpenSSL says of a list of ciphers or DH parameters that it can't use, and NGINX of a variable
// that it does not have.
var withoutPlace = regexp.MustCompile(`^SSL_CTX_set_cipher_list\(.*SSL routines:[^:]*:(?:no cipher match|invalid command)\)$|^(?:SSL_CTX_set_tmp_dh|SSL_CTX_set0_tmp_dh_pkey|PEM_read_bio_DHparams|PEM_read_bio_Parameters)\(.* failed \(SSL: .*|^unknown "[a-z0-9_]+" variable$`)
