package main

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses of the cluster's network. It has no way out.
const (
	nodeName    = "node1"
	nodeAddress = "10.244.0.1" // the node's, and the gateway of the pods
	podRange    = "10.244.0.0/16"
	nodePods    = "10.244.0.0/24"
	firstPod    = "10.244.0.2"
	lastPod     = "10.244.0.254"

	serviceRange      = "10.96.0.0/16"
	apiServiceAddress = "10.96.0.1"

	// localRange belongs to the node: a listener on a wildcard address answers at
	// each of these four million addresses. EndpointSlices of tests may name them; the
	// API server rejects loopback addresses.
	localRange = "10.128.0.0/10"

	bridge = "pods0"
	apiURL = "https://" + nodeAddress + ":6443"
)

// setupNetwork brings up loopback and the bridge of the pods. It fails in a
// namespace that is in use already.
func setupNetwork() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing network interfaces: %w", err)
	}
	var loopback netlink.Link
	for _, link := range links {
		if link.Attrs().Flags&net.FlagLoopback == 0 && link.Attrs().OperState == netlink.OperUp {
			return fmt.Errorf("network interface %s is up: the namespace is not the cluster's own", link.Attrs().Name)
		}
		if link.Attrs().Name == "lo" {
			loopback = link
		}
	}
	if loopback == nil {
		return fmt.Errorf("network namespace without loopback")
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("bringing up loopback: %w", err)
	}
	index, err := addBridge()
	if err != nil {
		return fmt.Errorf("making the bridge of the pods: %w", err)
	}
	if err := addRoutes(loopback.Attrs().Index, index); err != nil {
		return fmt.Errorf("adding routes: %w", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("forwarding packets: %w", err)
	}
	return nil
}

func addBridge() (index int, err error) {
	// Without an address of its own, a bridge takes one of those of its pods, and another one when
	// that pod ends: what other pods send then goes nowhere until they ask for it again.
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge, HardwareAddr: net.HardwareAddr{0x02, 0, 10, 244, 0, 1}}}
	if err := netlink.LinkAdd(br); err != nil {
		return 0, err
	}
	address, err := netlink.ParseAddr(nodeAddress + "/24")
	if err != nil {
		return 0, err
	}
	if err := netlink.AddrAdd(br, address); err != nil {
		return 0, err
	}
	return br.Index, netlink.LinkSetUp(br)
}

func addRoutes(loopback, bridge int) error {
	_, local, err := net.ParseCIDR(localRange)
	if err != nil {
		return err
	}
	_, services, err := net.ParseCIDR(serviceRange)
	if err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{
		LinkIndex: loopback, Dst: local, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
	}); err != nil {
		return err
	}
	// kube-proxy rewrites the addresses of Services after a route was found.
	return netlink.RouteAdd(&netlink.Route{LinkIndex: bridge, Dst: services})
}
