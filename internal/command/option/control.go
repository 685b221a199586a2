package option

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/command/selection"
	"github.com/headgate/headgate/internal/command/usage"
)

// Control are the flags of a control, besides those of the controller.
type Control struct {
	// EdgeAddress is where edges get their units.
	EdgeAddress string
	// EdgeCertificate, EdgeKey and EdgeCA are files; empty if the control is its own authority.
	EdgeCertificate, EdgeKey, EdgeCA string

	edgeAuthority string
	edgeAccounts  []string
}

// edgesName is the default name of the objects with the authority, and edgeAccount that of the account of edges.
const (
	edgesName   = "headgate-edges"
	edgeAccount = "headgate-edge"
)

// AddControl adds the flags of a control.
func (o *Options) AddControl(f *pflag.FlagSet) {
	o.part = control
	o.addHidden(f)
	c := &o.Control
	f.StringVar(&c.EdgeAddress, "edge-address", ":8444", "HOST:PORT or :PORT at which edges get what they serve")
	f.StringVar(&c.EdgeCertificate, "edge-certificate", "", "PEM file with the certificate that edges see, for the DNS name headgate-control; it is read again when it changes (default: the control makes it)")
	f.StringVar(&c.EdgeKey, "edge-key", "", "PEM file with the key of --edge-certificate")
	f.StringVar(&c.EdgeCA, "edge-ca", "", "PEM file with the authorities of the certificates of edges, with --edge-certificate")
	f.StringVar(&c.edgeAuthority, "edge-authority", "", "NAMESPACE/NAME of the Secret with the authority that signs certificates, and of the ConfigMap with its certificate for edges; both are created if they are missing (default: "+edgesName+" in the namespace of POD_NAMESPACE)")
	f.StringSliceVar(&c.edgeAccounts, "edge-account", nil, "NAMESPACE/NAME of a ServiceAccount whose Pods are edges, or NAMESPACE/NAME=GROUP if they get only the units of the namespaces with the annotation headgate.io/edge-group: GROUP, and those without it if the group is \"default\"; may be repeated (default: "+edgeAccount+" in the namespace of POD_NAMESPACE)")
}

// addHidden adds all flags of the controller. The help of a control or an edge does not repeat them.
func (o *Options) addHidden(f *pflag.FlagSet) {
	o.Add(f)
	f.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
}

// CertificateFiles reports whether the certificates of a control are files.
func (o Control) CertificateFiles() bool { return o.EdgeCertificate != "" }

func (o Control) check(folder bool) error {
	files := 0
	for _, name := range []string{o.EdgeCertificate, o.EdgeKey, o.EdgeCA} {
		if name != "" {
			files++
		}
	}
	switch {
	case files != 0 && files != 3:
		return errors.New("--edge-certificate, --edge-key and --edge-ca require each other")
	case files == 0 && folder:
		return errors.New("--manifests-dir serves a folder, in which there is no authority for the certificates of edges: set --edge-certificate, --edge-key and --edge-ca")
	case files != 0 && o.edgeAuthority != "":
		return errors.New("--edge-certificate and --edge-authority are mutually exclusive: with files, who has signed the certificates of edges says who is one")
	}
	if _, err := portOf(o.EdgeAddress); err != nil {
		return usage.InvalidValue(o.EdgeAddress, "edge-address", "HOST:PORT or :PORT")
	}
	if _, err := selection.ObjectName("edge-authority", o.edgeAuthority); err != nil {
		return err
	}
	_, err := o.accounts("")
	return err
}

// Authority is the name of the Secret and the ConfigMap; own is the namespace of this process. The flags are checked
// already.
func (o Control) Authority(own string) types.NamespacedName {
	return objectOr(o.edgeAuthority, types.NamespacedName{Namespace: own, Name: edgesName})
}

// Accounts are the groups of the ServiceAccounts of edges, empty for all units; own is the namespace of this process.
// The flags are checked already.
func (o Control) Accounts(own string) map[types.NamespacedName]string {
	accounts, err := o.accounts(own)
	if err != nil {
		return nil
	}
	return accounts
}

func (o Control) accounts(own string) (map[types.NamespacedName]string, error) {
	if len(o.edgeAccounts) == 0 {
		return map[types.NamespacedName]string{{Namespace: own, Name: edgeAccount}: ""}, nil
	}
	accounts := map[types.NamespacedName]string{}
	for _, text := range o.edgeAccounts {
		name, group, grouped := strings.Cut(text, "=")
		account, err := selection.ObjectName("edge-account", name)
		if err != nil || account.Name == "" || grouped && validation.IsDNS1123Label(group) != nil {
			return nil, usage.InvalidValue(text, "edge-account", "NAMESPACE/NAME or NAMESPACE/NAME=GROUP, with a group of lower-case letters, digits and -")
		}
		if other, twice := accounts[account]; twice && other != group {
			return nil, usage.InvalidValue(text, "edge-account", "the only one of this ServiceAccount")
		}
		accounts[account] = group
	}
	return accounts, nil
}

// EdgeAccounts are the ServiceAccounts of the edges of a control, sorted; own is the namespace of this process. Without a
// control there are none.
func (o Options) EdgeAccounts(own string) []types.NamespacedName {
	if o.part != control {
		return nil
	}
	return slices.SortedFunc(maps.Keys(o.Accounts(own)), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Edge are the flags of an edge, besides those of the controller.
type Edge struct {
	// ControlAddress is that of the control.
	ControlAddress string
	// ControlCA is a file, and so are ControlToken, or ControlCertificate and ControlKey.
	ControlCA, ControlToken, ControlCertificate, ControlKey string
	// StateDir is empty for none.
	StateDir string
}

// AddEdge adds the flags of an edge.
func (o *Options) AddEdge(f *pflag.FlagSet) {
	o.part = edge
	o.addHidden(f)
	e := &o.Edge
	f.StringVar(&e.ControlAddress, "control-address", "", "HOST:PORT of the control (required)")
	f.StringVar(&e.ControlCA, "control-ca", "", "PEM file with the authorities of the control's certificate; it is read again when it changes (required)")
	f.StringVar(&e.ControlToken, "control-token", "", "file with a token of this Pod's ServiceAccount for the audience headgate-control, for which the control gives a certificate; it is read again when it changes")
	f.StringVar(&e.ControlCertificate, "control-certificate", "", "PEM file with the certificate that the control sees, instead of --control-token; it is read again when it changes")
	f.StringVar(&e.ControlKey, "control-key", "", "PEM file with the key of --control-certificate")
	f.StringVar(&e.StateDir, "state-dir", "", "directory in memory (tmpfs) for what is served, private keys included, so that an edge that is restarted while there is no control serves on (default: none)")
}

func (o Edge) check() error {
	switch {
	case o.ControlAddress == "":
		return errors.New("--control-address is required: HOST:PORT of the control")
	case o.ControlCA == "":
		return errors.New("--control-ca is required: a PEM file with the authorities of the control's certificate")
	case o.ControlToken == "" && o.ControlCertificate == "":
		return errors.New("--control-token, or --control-certificate and --control-key, are required")
	case o.ControlToken != "" && o.ControlCertificate != "":
		return errors.New("--control-token and --control-certificate are mutually exclusive")
	case (o.ControlCertificate == "") != (o.ControlKey == ""):
		return errors.New("--control-certificate and --control-key require each other")
	}
	// Without an address of that form there is no port either.
	host, _, _ := net.SplitHostPort(o.ControlAddress)
	if _, err := portOf(o.ControlAddress); err != nil || host == "" {
		return usage.InvalidValue(o.ControlAddress, "control-address", "HOST:PORT")
	}
	return nil
}

// portOf is the port of HOST:PORT or :PORT.
func portOf(address string) (uint16, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err == nil && port == 0 {
		err = strconv.ErrRange
	}
	return uint16(port), err
}

// EdgeGroups reports whether some edges get only the units of a group of namespaces.
func (o Options) EdgeGroups() bool {
	for _, group := range o.Accounts("") {
		if group != "" {
			return o.part == control
		}
	}
	return false
}

// A part is what of Headgate runs in a process, empty for all of it.
type part string

const (
	control part = "control"
	edge    part = "edge"
)

// IsControl reports whether this process is a control.
func (o Options) IsControl() bool { return o.part == control }

// Name is who this process is for the control: its Pod, or its machine.
func (o Edge) Name() string {
	if pod := os.Getenv("POD_NAME"); pod != "" {
		return pod
	}
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
