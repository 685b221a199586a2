package nginx

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// CheckPorts checks whether NGINX can listen on TCP addresses. Its error names each
// address that is in use, with the flag that sets its port, if flags has it, and the process
// if /proc shows it. Each address is bound alone and without sharing: NGINX's own sockets would silently share their
// port with other instances of the same user. The sockets never listen, so they
// get no connections.
func CheckPorts(addresses []netip.AddrPort, flags map[uint16]string) error {
	var problems []error
	for i, address := range addresses {
		if slices.Contains(addresses[:i], address) {
			problems = append(problems, fmt.Errorf("port %d is configured twice", address.Port()))
			continue
		}
		if err := bind(address); err != nil {
			err = explain(address, err)
			if flag := flags[address.Port()]; flag != "" {
				err = fmt.Errorf("%s: %w", flag, err)
			}
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// ExplainPort says why a TCP address can't be listened on, by the error of doing so. It names
// the process that has it, if /proc shows it.
func ExplainPort(address netip.AddrPort, err error) error { return explain(address, err) }

func explain(address netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use%s", address, holder(address))
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("can't listen on %s: privileged ports need root or CAP_NET_BIND_SERVICE", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("can't listen on %s: this machine does not have the address: %w", address, err)
	}
	return fmt.Errorf("can't listen on %s: %w", address, err)
}

// CheckShared checks whether NGINX can listen on a TCP address besides those that it has: by sockets that share
// their port, which only those of the same user can.
func CheckShared(address netip.AddrPort) error {
	if err := bindWith(address, syscall.SO_REUSEADDR, unix.SO_REUSEPORT); err != nil {
		return explain(address, err)
	}
	return nil
}

// bind binds an address as NGINX would, but without sharing, and closes it.
func bind(address netip.AddrPort) error { return bindWith(address, syscall.SO_REUSEADDR) }

// bindWith binds an address with an option of sockets, and closes it.
func bindWith(address netip.AddrPort, options ...int) error {
	family := syscall.AF_INET
	var target syscall.Sockaddr
	if address.Addr().Is4() {
		target = &syscall.SockaddrInet4{Port: int(address.Port()), Addr: address.Addr().As4()}
	} else {
		family = syscall.AF_INET6
		target = &syscall.SockaddrInet6{Port: int(address.Port()), Addr: address.Addr().As16()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if family == syscall.AF_INET6 {
		if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 1); err != nil {
			return err
		}
	}
	for _, option := range options {
		if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, option, 1); err != nil {
			return err
		}
	}
	return syscall.Bind(fd, target)
}

// holder is " by NAME (process PID), …", or empty if /proc does not show it.
func holder(address netip.AddrPort) string {
	var inodes []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		inodes = append(inodes, listeners(table, address)...)
	}
	var names []string
	for _, pid := range socketHolders(inodes) {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil {
			names = append(names, fmt.Sprintf("%s (process %d)", strings.TrimSpace(string(name)), pid))
		}
	}
	if names == nil {
		return ""
	}
	return " by " + strings.Join(names, ", ")
}

// listeners returns the inodes of the sockets in a table of /proc that listen on
// address or on an overlapping one.
func listeners(table string, address netip.AddrPort) []string {
	const stateListen = "0A"
	var inodes []string
	for fields := range rows(table) {
		if len(fields) < 10 || fields[3] != stateListen {
			continue
		}
		local, ok := parseLocal(fields[1])
		if !ok || local.Port() != address.Port() {
			continue
		}
		// A socket on [::] may hold the port of IPv4 too.
		if local.Addr() == address.Addr() || local.Addr().IsUnspecified() || address.Addr().IsUnspecified() {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// rows yields the fields of each line of a file, or nothing if it can't be read.
func rows(file string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		f, err := os.Open(file)
		if err != nil {
			return
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if !yield(strings.Fields(lines.Text())) {
				return
			}
		}
	}
}

// parseLocal parses "0100007F:1F90". Each 32 bits of the address have the byte
// order of the machine, which is little-endian on all supported ones.
func parseLocal(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(raw, 4) {
		slices.Reverse(word)
	}
	address, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	return netip.AddrPortFrom(address.Unmap(), uint16(number)), ok && err == nil
}

// socketHolders returns the processes that hold one of the sockets, as far as
// /proc is readable.
func socketHolders(inodes []string) (pids []int) {
	if len(inodes) == 0 {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // The pattern is valid.
	for _, file := range files {
		target, err := os.Readlink(file)
		inode, isSocket := strings.CutPrefix(target, "socket:[")
		if err != nil || !isSocket || !slices.Contains(inodes, strings.TrimSuffix(inode, "]")) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
