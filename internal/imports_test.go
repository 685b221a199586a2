// Package internal_test holds the tree to its architecture: which package may
// know which.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/headgate/headgate/"

// knows lists, for a package, all other packages of this module that it may
// import, and what to do instead. "…" at the end stands for what lies below.
// Packages that are not listed here are at the edge, where only the rules of
// forbidden count.
var knows = []struct {
	of      string
	allowed []string
	advice  string
}{
	{"internal/finding", nil, "a finding is text about an object: let the caller fill it in"},
	{"internal/observe/tracker", []string{"internal/finding"}, "it keeps the findings of any owner: what they are about does not matter"},
	{"internal/observe/expiry", []string{"internal/finding", "internal/observe/tracker", "internal/model"}, "it follows the certificates that it gets: the controller knows which names show them and why"},
	{"internal/adminapi", []string{"internal/explain", "internal/explain/report", "internal/finding", "internal/observe/history", "internal/adminapi/overview", "internal/unit"}, "it shows the results of functions that it gets, and only reads"},
	{"internal/observe/history", []string{"internal/unit"}, "it remembers what the controller reports: what it means is for those who made it"},
	{"internal/adminapi/overview", []string{"internal/model", "internal/unit"}, "it keeps what is built: who asks, and what NGINX knows, is handed in"},
	{"internal/adminapi/dashboard", nil, "it serves files and a handler: what that answers is for the controller's API"},
	{"internal/model", []string{"internal/model/form", "internal/model/geo", "internal/model/logging", "internal/model/names", "internal/syntax/nginxsyntax"}, "the model is plain data: what makes it or reads it goes elsewhere"},
	{"internal/model/logging", []string{"internal/model/form", "internal/syntax/nginxsyntax"}, "it says what logs have: which settings ask for it is known by the feature"},
	{"internal/model/geo", nil, "it says what databases have: where they come from is for the sources"},
	{"internal/model/form", nil, "it reads JSON: what values there are is for the model"},
	{"internal/model/names", []string{"internal/model/form"}, "it checks names: what they are used for is for the model"},
	{"internal/model/prediction", []string{"internal/model", "internal/syntax/template"}, "a prediction is data: features fill it in, and explain asks for it"},
	{"internal/model/resource", nil, "a declaration holds numbers and names: what they are for is known by the feature"},
	{"internal/model/directive", []string{"internal/model"}, "a directive is declared as numbers and words: what it means is known by the feature"},
	{"internal/feature", []string{"internal/finding", "internal/model", "internal/model/directive", "internal/model/logging", "internal/model/prediction", "internal/model/resource", "internal/syntax/header", "internal/syntax/nginxsyntax", "internal/syntax/template"}, "the contract knows no single feature and no one who calls it"},
	{"internal/feature/all", []string{"internal/feature", "internal/feature/…"}, "it is a list of features and nothing else"},
	{"internal/syntax/template", []string{"internal/finding", "internal/model/geo"}, "it reads texts with variables: what they are used for is known by the feature"},
	{"internal/syntax/address", []string{"internal/finding", "internal/model"}, "it reads addresses: who is compared with them, and what is asked there, is known by the feature"},
	{"internal/syntax/quantity", nil, "it reads times and sizes: which may be is known by the feature"},
	{"internal/syntax/header", nil, "it reads names and values: what sets headers is known by the feature"},
	{"internal/syntax/snippet/argument", []string{"internal/syntax/pcre"}, "it reads arguments: which directives have them is for snippet"},
	{"internal/syntax/snippet/program", []string{"internal/syntax/template"}, "a program is plain data for Lua"},
	{"internal/syntax/snippet", []string{"internal/finding", "internal/syntax/header", "internal/syntax/pcre", "internal/syntax/snippet/…", "internal/syntax/template"}, "it knows the language of NGINX: what its directives are used for is known by the features with snippets"},
	{
		"internal/feature/…",
		[]string{"internal/feature", "internal/finding", "internal/guard", "internal/model", "internal/model/…", "internal/syntax/…"},
		"features do not know of each other: what several of them must know belongs into the model and build",
	},
	{"internal/docs/manual", nil, "the reference of a program is written from its commands: which there are is handed in"},
	{"internal/adminapi/backendview", []string{"internal/unit"}, "it shows packed units in another form: how they are read is for dbg"},
	{"internal/command/usage", []string{"internal/finding/nearest"}, "it knows what arguments and flags are: which ones a command has is for the command"},
	{"internal/command/release", []string{"internal/nginx"}, "it says what was built: who prints it is outside"},
	{"internal/command/instance", []string{"internal/dataplane", "internal/explain", "internal/explain/report", "internal/nginx/rundir"}, "it finds a controller and queries it: what the answers mean is for dbg and explain"},
	{
		"internal/command/selection",
		[]string{
			"internal/build", "internal/command/snapshot", "internal/command/usage", "internal/feature/all", "internal/finding", "internal/observe/logoutput",
			"internal/observe/tracker", "internal/source", "internal/source/file", "internal/source/kube", "internal/store",
		},
		"it selects and reads objects: what is made of them is for the commands",
	},
	{
		"internal/command/option",
		[]string{
			"internal/admission/selfsigned", "internal/cluster/election", "internal/cluster/limitstore", "internal/cluster/status", "internal/command/selection",
			"internal/command/usage", "internal/model/geo", "internal/observe/logoutput", "internal/observe/traffic", "internal/source/geodb",
		},
		"it declares and checks flags: what the controller does with their values is for run",
	},
	{
		"internal/command/dbg",
		[]string{
			"internal/adminapi", "internal/adminapi/backendview", "internal/command/instance", "internal/command/plaintext", "internal/command/usage",
			"internal/dataplane", "internal/explain", "internal/finding", "internal/model", "internal/router", "internal/unit",
		},
		"it shows what a running controller answers: where objects come from is for others, and explain is handed in",
	},
	{
		"internal/command/explain",
		[]string{
			"internal/build", "internal/command/instance", "internal/command/plaintext", "internal/command/release", "internal/command/selection", "internal/command/snapshot",
			"internal/command/usage", "internal/explain", "internal/explain/report", "internal/explain/text", "internal/finding", "internal/source", "internal/source/file",
		},
		"it reads objects and prints: how a request is handled is for internal/explain",
	},
	{
		"internal/command/rbac",
		[]string{
			"internal/admission/selfsigned", "internal/cluster/authority", "internal/cluster/permission", "internal/command/option",
			"internal/command/selection", "internal/command/usage", "internal/observe/event", "internal/source/kube",
		},
		"it adds up permissions by the flags: what is asked for is declared by those who ask",
	},
	{"internal/command/certgen", []string{"internal/admission/certgen", "internal/command/release", "internal/command/usage", "internal/source/kube"}, "it has flags and a log: certificates are made by admission/certgen"},
	{"internal/command/waitshutdown", []string{"internal/command/release", "internal/command/usage", "internal/nginx/rundir"}, "it knows processes and sockets: what runs in them is for others"},
	{"internal/command/printtemplate", []string{"internal/command/usage", "internal/plan/nginxconf"}, "it prints a text of nginxconf"},
	{
		"cmd/headgate",
		[]string{
			"internal/command/certgen", "internal/command/dbg", "internal/command/explain", "internal/command/lint", "internal/command/printtemplate", "internal/command/rbac",
			"internal/command/release", "internal/command/run", "internal/command/usage", "internal/command/waitshutdown", "internal/observe/linequeue",
		},
		"it gives each name its command: what a command does is for its package",
	},
	{"internal/command/plaintext", nil, "it makes any text safe to print: what prints it is outside"},
	{"internal/command/leftover", nil, "it looks at one object: what a cluster serves of it is for build"},
	{"internal/command/pod", nil, "it runs commands in pods: what they are is for its callers"},
	{"internal/ingressnginx", nil, "it is a list of names, and of what replaced those that are gone: what Headgate does with them is for build"},
	{"internal/syntax/pcre", nil, "it is a layer over a library: what patterns are for is known by who compiles them"},
	{"internal/cluster/client", nil, "it knows the types of resources: what is read of them is for its callers"},
	{"internal/cluster/authority", []string{"internal/cluster/client", "internal/cluster/kept", "internal/cluster/permission", "internal/unit/link"}, "it keeps an authority and reviews tokens: what certificates are used for is for link"},
	{"internal/cluster/kept", []string{"internal/cluster/client"}, "it keeps an object: what is in it is for its callers"},
	{"internal/cluster/election", []string{"internal/cluster/client"}, "it knows a Lease: what a leader does is handed in"},
	{"internal/cluster/status", []string{"internal/cluster/client"}, "it writes addresses into the selected Ingresses: the selection and the leadership are passed in"},
	{"internal/cluster/permission", nil, "a permission is text about a request: who asks fills it in"},
	{
		"internal/observe/event", []string{"internal/cluster/client", "internal/cluster/permission", "internal/finding"},
		"it writes what it gets: what follows the findings or the controller calls it from outside",
	},
	{"internal/syntax/nginxsyntax", nil, "it reads lines of nginx.conf: what directives mean is known by who asks"},
	{"internal/finding/nearest", nil, "it compares names: what they are of is known by its callers"},
	{"internal/observe/profiler", nil, "it serves what the Go runtime knows: it must not know the program"},
	{"internal/observe/logoutput", []string{"internal/observe/linequeue"}, "it writes what is logged: the flags are for who makes it"},
	{"internal/guard", nil, "it says what is refused: what connects to addresses or signs with keys is for its callers"},
	{"internal/guard/pemfile", nil, "it reads files: what certificates and keys are for is for its callers"},
	{"internal/source", nil, "a source's contract is an object and whether it is gone"},
	{
		"internal/source/kube", []string{"internal/ingressnginx", "internal/cluster/client", "internal/cluster/permission", "internal/source", "internal/source/follow"},
		"it reads the API server and delivers objects: the controller subscribes to what the store refers to",
	},
	{"internal/source/file/manifest", nil, "it decodes bytes: where they come from is for package file"},
	{"internal/source/file", []string{"internal/source", "internal/source/file/manifest"}, "a source gives objects: what they mean is for store and build"},
	{"internal/source/follow", []string{"internal/source"}, "it runs jobs: what they fetch is for the sources that hand them in"},
	{"internal/source/…", []string{"internal/guard", "internal/source", "internal/source/follow"}, "a source gives objects: what they mean is for store and build"},
	{"internal/build/memo", nil, "it remembers what was parsed: what that is is for its callers"},
	{
		"internal/build/certificate", []string{"internal/build/memo", "internal/feature", "internal/finding", "internal/guard", "internal/model", "internal/source"},
		"it reads TLS Secrets: which name shows which of them is for others below build",
	},
	{
		"internal/build/endpoint", []string{"internal/finding", "internal/model"},
		"it reads Services and their slices: which Ingress asks for them is for build",
	},
	{"internal/build/streamvalue", []string{"internal/model"}, "it reads one entry: what it names is for build"},
	{
		"internal/build/spec", []string{"internal/build/memo", "internal/feature", "internal/finding", "internal/model"},
		"it says what one Ingress names: what other objects say is for build",
	},
	{
		"internal/build/tenancy",
		[]string{"internal/build/setting", "internal/build/spec", "internal/feature", "internal/finding", "internal/model"},
		"it says who is refused where a name belongs to another namespace: whose a name is, the store says",
	},
	{
		"internal/build/setting",
		[]string{"internal/build/memo", "internal/build/spec", "internal/feature", "internal/finding", "internal/ingressnginx", "internal/model", "internal/finding/nearest"},
		"it reads settings: what hosts, names and backends become by them is for build",
	},
	{
		"internal/build/servername",
		[]string{
			"internal/build/certificate", "internal/build/setting", "internal/build/spec", "internal/build/tenancy",
			"internal/feature", "internal/finding", "internal/model", "internal/syntax/pcre",
		},
		"it says which host a name is for and what certificate it shows: the host's routes are for build",
	},
	{
		"internal/build/routing",
		[]string{
			"internal/build/endpoint", "internal/build/servername", "internal/build/setting", "internal/build/spec", "internal/build/tenancy", "internal/feature",
			"internal/finding", "internal/model", "internal/model/prediction", "internal/syntax/nginxsyntax", "internal/syntax/pcre", "internal/unit",
		},
		"it says which paths a host has and where they lead: how backends come to endpoints is for build",
	},
	{
		"internal/build", []string{"internal/build/…", "internal/feature", "internal/finding", "internal/model", "internal/model/prediction", "internal/guard", "internal/syntax/nginxsyntax", "internal/syntax/pcre", "internal/source", "internal/unit"},
		"build sees objects through its View and returns the model: it knows neither store nor what is done with the model",
	},
	{
		"internal/store", []string{"internal/build/certificate", "internal/build/endpoint", "internal/build/spec", "internal/build/streamvalue", "internal/feature", "internal/model", "internal/source", "internal/unit"},
		"the store knows what an Ingress names (spec.References) and nothing of what happens to the keys that it returns",
	},
	{
		"internal/command/snapshot",
		[]string{"internal/build", "internal/feature", "internal/finding", "internal/model", "internal/syntax/pcre", "internal/plan", "internal/source", "internal/store", "internal/unit"},
		"it builds what it gets: its callers know where objects come from and report about them",
	},
	{
		"internal/admission/review",
		[]string{"internal/build", "internal/build/spec", "internal/feature", "internal/finding", "internal/ingressnginx", "internal/source", "internal/store", "internal/unit"},
		"it decides about Ingresses: the webhook's server asks it, and the sources give it objects",
	},
	{"internal/admission/certgen", []string{"internal/cluster/client"}, "it makes certificates and writes objects when it is called: who serves them is for its callers"},
	{"internal/admission/selfsigned", []string{"internal/admission/certgen", "internal/cluster/client", "internal/cluster/kept", "internal/cluster/permission"}, "it keeps a certificate: what is served with it is for the webhook's server"},
	{"internal/admission", []string{"internal/admission/review", "internal/guard/pemfile"}, "it serves the webhook: what is decided, and why, is for review"},
	{
		"internal/command/lint",
		[]string{
			"internal/build/spec", "internal/command/plaintext", "internal/command/release", "internal/command/selection", "internal/command/snapshot",
			"internal/command/usage", "internal/finding", "internal/model", "internal/source", "internal/source/file", "internal/unit",
		},
		"it reports about a snapshot and files: build and the source make the findings",
	},
	{
		"internal/explain",
		[]string{"internal/build", "internal/build/routing", "internal/build/servername", "internal/build/spec", "internal/build/tenancy", "internal/feature", "internal/finding", "internal/model", "internal/model/prediction", "internal/router", "internal/store", "internal/syntax/address", "internal/explain/report", "internal/unit"},
		"it explains what the store has: where objects come from, and what NGINX has of them, is for its callers",
	},
	{"internal/explain/report", []string{"internal/finding"}, "it is plain data: explain fills it in"},
	{"internal/explain/text", []string{"internal/explain/report"}, "it writes what an explanation says: what that follows from is for explain"},
	{"internal/unit", []string{"internal/model"}, "a unit is packed from the model alone: what builds it and what pushes it is for others"},
	{"internal/unit/wire", []string{"internal/model", "internal/model/form", "internal/unit"}, "it encodes what was built: who sends it to whom is for others"},
	{"internal/unit/publish", []string{"internal/unit", "internal/unit/wire"}, "it keeps bytes with versions: what built them and who reads them is for others"},
	{"internal/unit/xds", []string{"internal/unit", "internal/unit/publish", "internal/unit/wire"}, "it carries units: who may have them, and what NGINX makes of them, is handed in"},
	{"internal/unit/journal", []string{"internal/unit", "internal/unit/publish", "internal/unit/wire"}, "it keeps bytes with versions in memory: where they come from, and of which schema they are, is handed in"},
	{"internal/unit/link", []string{"internal/guard/pemfile"}, "it connects a control and edges: what is carried, and what Kubernetes says of a token, is handed in"},
	{"internal/router", []string{"internal/model", "internal/syntax/nginxsyntax", "internal/syntax/pcre", "internal/unit"}, "it routes by packed units as Lua does: what they were built from is for who explains"},
	{"internal/plan/nginxconf", []string{"internal/model", "internal/model/directive", "internal/model/logging", "internal/model/names", "internal/model/resource", "internal/syntax/nginxsyntax", "internal/syntax/pcre"}, "it writes what it gets: when NGINX is reloaded is for plan"},
	{"internal/plan/stapling", []string{"internal/model"}, "it says which certificates need responses: who fetches them is for sources"},
	{"internal/plan", []string{"internal/finding", "internal/model", "internal/model/directive", "internal/plan/nginxconf", "internal/plan/stapling", "internal/unit"}, "plan turns the model into bytes: pass it values of package model"},
	{"internal/controller/backlog", nil, "it says whose turn it is: what is built then is for the controller"},
	{
		"internal/controller/edge",
		[]string{
			"internal/controller/edge/budget", "internal/controller/edge/worker", "internal/controller/event", "internal/controller/retry", "internal/dataplane", "internal/feature", "internal/finding",
			"internal/model", "internal/model/directive", "internal/nginx", "internal/nginx/rundir", "internal/observe/history", "internal/observe/metrics",
			"internal/observe/tracing", "internal/observe/tracker", "internal/observe/traffic", "internal/plan", "internal/plan/nginxconf", "internal/unit",
		},
		"it has NGINX serve what was built: where that comes from is for its Builder",
	},
	{"internal/controller/groups", []string{"internal/source"}, "it says which edges get which namespaces: what these have is for others"},
	{"internal/controller/reports", []string{"internal/dataplane", "internal/finding", "internal/unit"}, "it carries what edges say: who may, and who looks at it, is handed in"},
	{
		"internal/controller/publisher",
		[]string{"internal/controller/event", "internal/finding", "internal/model", "internal/plan/stapling", "internal/unit", "internal/unit/publish", "internal/unit/wire"},
		"it publishes what was built: how edges are reached, and what they make of it, is for others",
	},
	{
		"internal/controller/follower",
		[]string{
			"internal/controller/edge", "internal/controller/fakecertificate", "internal/feature", "internal/finding", "internal/model", "internal/model/geo", "internal/observe/tracker", "internal/unit",
			"internal/unit/publish", "internal/unit/wire",
		},
		"it takes what a control publishes: how that comes is handed in, and what NGINX makes of it is for edge",
	},
	{"internal/controller/edge/budget", []string{"internal/model"}, "it counts: what is reloaded is for the controller"},
	{"internal/controller/fakecertificate", []string{"internal/model"}, "it makes a certificate: which names show it is for build"},
	{"internal/controller/event", nil, "it has functions wait: what they do is for who posts them"},
	{"internal/controller/retry", nil, "it says when: what is tried again is for its callers"},
	{
		"internal/controller/trial",
		[]string{
			"internal/build", "internal/controller/retry", "internal/feature", "internal/model", "internal/model/directive", "internal/nginx", "internal/nginx/rundir",
			"internal/plan/nginxconf", "internal/syntax/nginxsyntax", "internal/unit",
		},
		"it has NGINX test what it gets: what follows is for build and the controller",
	},
	{"internal/controller/edge/worker", []string{"internal/dataplane"}, "it counts processes: what waits for them is for the controller"},
	{"internal/observe/traffic", []string{"internal/finding", "internal/model", "internal/observe/tracker"}, "it adds up reports: who fetches them is handed in"},
	{"internal/observe/tracing", []string{"internal/model"}, "it exports what is reported: who fetches reports is handed in"},
	{"internal/cluster/limitstore", nil, "it brings counters from replica to replica: how NGINX is asked is handed in"},
	{"internal/dataplane", []string{"internal/model", "internal/unit"}, "the data plane's client pushes units, and does not read them"},
	{"internal/stream/clienthello", nil, "it reads bytes: where they come from, and what a name leads to, is for its callers"},
	{"internal/stream/endpoint", nil, "it chooses among addresses: what is connected to them is for stream"},
	{"internal/stream/logline", []string{"internal/model", "internal/model/logging"}, "it writes a line: where that goes is for stream"},
	{"internal/stream/proxyheader", nil, "it reads and writes bytes: who is believed is for its callers"},
	{"internal/stream/socket", nil, "it moves bytes between sockets: which ones is for stream"},
	{"internal/stream", []string{"internal/model", "internal/stream/…"}, "it serves ports: what they are for, and who gets reports of problems, is handed in"},
	{"internal/observe/logtarget", nil, "it writes lines: what is logged is for its callers"},
	{"internal/nginx/rundir", nil, "it is a directory: what files say is for plan, and what runs in it for nginx"},
	{"internal/nginx", []string{"internal/nginx/rundir"}, "this package runs a process: pass it files and settings as plain values"},
}

// forbidden lists what packages must not import and why.
var forbidden = []struct {
	in      []string
	imports []string // "net" is that package, "net/…" all below it
	advice  string
}{
	{
		[]string{"internal/build", "internal/build/…", "internal/model", "internal/unit", "internal/router", "internal/plan", "internal/plan/…", "internal/finding", "internal/feature", "internal/feature/…", "internal/syntax/address", "internal/syntax/pcre", "internal/explain", "internal/explain/report", "internal/model/prediction", "internal/command/leftover", "internal/syntax/nginxsyntax", "internal/source/file/manifest"},
		[]string{
			"os", "os/…", "io/ioutil", "path/filepath", "syscall", "net", "net/http", "net/http/…",
			"log", "log/…", "math/rand", "math/rand/…", "crypto/rand", "k8s.io/client-go/…", "k8s.io/klog/…",
		},
		"this package is pure, equal input gives equal output: let a source fetch it, or return a finding and let the edge log it",
	},
	{
		[]string{"internal/model", "internal/unit", "internal/router", "internal/plan", "internal/plan/…", "internal/finding", "internal/feature", "internal/feature/…", "internal/dataplane", "internal/nginx", "internal/stream", "internal/stream/…", "internal/syntax/pcre"},
		[]string{"k8s.io/…", "sigs.k8s.io/…"},
		"Kubernetes ends in build: translate it there into the model",
	},
	{
		[]string{"internal/store", "internal/build", "internal/build/…", "internal/controller", "internal/controller/…"},
		[]string{"k8s.io/client-go/…", "github.com/fsnotify/…"},
		"only a source knows where objects come from",
	},
	{
		[]string{"internal/adminapi", "internal/adminapi/…", "internal/admission", "internal/admission/…", "internal/cluster/…", "internal/observe/…", "internal/source/…", "internal/command/certgen", "internal/command/dbg", "internal/command/explain", "internal/command/instance", "internal/command/leftover", "internal/command/lint", "internal/command/option", "internal/command/printtemplate", "internal/command/rbac", "internal/command/release", "internal/command/run", "internal/command/selection", "internal/command/snapshot", "internal/command/usage", "internal/command/waitshutdown", "cmd/headgate"},
		[]string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/kubernetes/…", "k8s.io/client-go/informers/…", "k8s.io/client-go/listers/…", "k8s.io/client-go/tools/leaderelection", "k8s.io/client-go/tools/leaderelection/…", "k8s.io/cli-runtime/…"},
		"it brings in the types and clients of all groups: use internal/cluster/client",
	},
	{
		[]string{"internal/controller"},
		[]string{"internal/explain", "internal/explain/…", "internal/command/…", "internal/adminapi", "internal/admission/review", "internal/admission"},
		"the controller serves: pass it a function that looks at what it has (Controller.Inspect)",
	},
}

// actors are imported by the packages that may act, and by no others.
var actors = map[string][]string{
	"internal/nginx":             {"internal/controller/edge", "internal/controller/trial", "internal/command/release", "internal/command/run", "internal/test/headgatetest", "test/…", "bench"},
	"internal/dataplane":         {"internal/controller/edge", "internal/controller/edge/worker", "internal/controller/reports", "internal/command/dbg", "internal/command/instance", "internal/command/run", "internal/test/headgatetest", "test/…", "bench"},
	"internal/stream/socket":     {"internal/stream"},
	"internal/stream":            {"internal/command/run", "test/…", "bench"},
	"internal/command/pod":       {"cmd/kubectl-headgate"},
	"internal/command/run":       {"cmd/headgate"},
	"internal/test/headgatetest": {"test/…"},
	"internal/test/pkitest":      {"test/…"},
	"internal/test/clienttest":   {"test/…"},

	"internal/test/collectortest": {"test/…"},
	"internal/test/porttest":      {"internal/test/collectortest", "internal/test/headgatetest", "test/…"},
}

// clockCalls are what package time offers to those who act. The others use
// only its types.
var clockCalls = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

func TestArchitecture(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(dir)
		seen[pkg] = true
		for _, complaint := range check(pkg, file) {
			t.Errorf("%s: %s", path, complaint)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range knows {
		if !strings.HasSuffix(rule.of, "…") && !seen[rule.of] {
			t.Errorf("there is a rule for %s, which holds no Go file: delete the rule or correct the name", rule.of)
		}
	}
}

// check says what is wrong with one file of a package.
func check(pkg string, file *ast.File) []string {
	var complaints []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return []string{err.Error()}
		}
		complaints = append(complaints, checkImport(pkg, strings.TrimPrefix(path, module))...)
	}
	if matches(pkg, forbidden[0].in) {
		for _, call := range clockUses(file) {
			complaints = append(complaints, fmt.Sprintf("%s uses %s: %s", pkg, call, forbidden[0].advice))
		}
	}
	return complaints
}

func checkImport(pkg, path string) []string {
	var complaints []string
	for _, rule := range knows {
		if !matches(pkg, []string{rule.of}) {
			continue
		}
		if (strings.HasPrefix(path, "internal/") || strings.HasPrefix(path, "cmd/")) && !matches(path, rule.allowed) {
			complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", pkg, path, rule.advice))
		}
		break
	}
	for _, rule := range forbidden {
		if matches(pkg, rule.in) && matches(path, rule.imports) {
			complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", pkg, path, rule.advice))
		}
	}
	if who, ok := actors[path]; ok && !matches(pkg, who) {
		complaints = append(complaints, fmt.Sprintf(
			"%s imports %s: only %s may; return what is to be done and let them do it", pkg, path, strings.Join(who, ", ")))
	}
	return complaints
}

func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if above, ok := strings.CutSuffix(pattern, "…"); ok {
			return strings.HasPrefix(path, above)
		}
		return path == pattern
	})
}

// clockUses lists the file's uses of the clock, under any name that package time
// has in it.
func clockUses(file *ast.File) []string {
	name := ""
	for _, spec := range file.Imports {
		if spec.Path.Value == `"time"` {
			name = "time"
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	var uses []string
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(clockCalls, selector.Sel.Name) {
				uses = append(uses, "time."+selector.Sel.Name)
			}
		}
		return true
	})
	return uses
}

// TestRulesBite shows each rule a file that breaks it.
func TestRulesBite(t *testing.T) {
	for _, c := range []struct {
		pkg, imports, body string
		complaints         int
	}{
		{"internal/build", `"net/netip"; "crypto/x509"; "` + module + `internal/model"`, "", 0},
		{"internal/build", `"os"; "net"; "net/http"; "log/slog"; "k8s.io/client-go/kubernetes"`, "", 6},
		{"internal/build", `"` + module + `internal/store"`, "", 1},
		{"internal/build/spec", `"os"; "` + module + `internal/build"`, "var x = time.Now", 2},
		{"internal/build/spec", `"time"; "k8s.io/api/core/v1"`, "var x = time.Now", 1},
		{"internal/build", `t "time"`, "var x = t.Now", 1},
		{"internal/build", `"time"`, "var x time.Duration", 0},
		{"internal/controller", `"time"`, "var x = time.Now()", 0},
		{"internal/plan", `"k8s.io/api/core/v1"`, "", 1},
		{"internal/plan", `"` + module + `internal/nginx"`, "", 2},
		{"internal/controller", `"` + module + `internal/nginx"`, "", 1},
		{"internal/controller/edge", `"` + module + `internal/nginx"`, "", 0},
		{"internal/controller/edge", `"` + module + `internal/store"`, "", 1},
		{"internal/controller", `"` + module + `internal/explain"`, "", 1},
		{"internal/controller", `"` + module + `internal/command/run"`, "", 2},
		{"internal/command/dbg", `"` + module + `internal/source/kube"; "` + module + `internal/nginx"`, "", 3},
		{"internal/command/run", `"` + module + `internal/nginx"; "k8s.io/client-go/kubernetes"`, "", 1},
		{"cmd/headgate", `"` + module + `internal/stream"`, "", 2},
		{"internal/feature/cors", `"` + module + `internal/feature/proxying"`, "", 1},
		{"internal/feature/all", `"` + module + `internal/feature/proxying"`, "", 0},
		{"internal/source/file", `"os"; "` + module + `internal/store"`, "", 1},
		{"internal/source/file/manifest", `"os"; "k8s.io/api/core/v1"`, "", 1},
		{"internal/source/kube", `"k8s.io/client-go/kubernetes"; "` + module + `internal/source"`, "", 1},
		{"internal/source/kube", `"k8s.io/client-go/dynamic"; "` + module + `internal/source"`, "", 0},
		{"internal/source/kube", `"` + module + `internal/store"; "` + module + `internal/build"`, "", 2},
		{"internal/observe/health", `"` + module + `internal/test/headgatetest"`, "", 1},
	} {
		source := "package x\nimport (" + c.imports + ")\n" + c.body
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := check(c.pkg, file); len(got) != c.complaints {
			t.Errorf("%s with %s %s: %d complaints, want %d: %q", c.pkg, c.imports, c.body, len(got), c.complaints, got)
		}
	}
}
