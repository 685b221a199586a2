package main

import (
	"fmt"
	"io"
	"net"
)

// serveStreams answers TCP connections and datagrams of a port until the program ends: with its
// name and a newline, and then with what it gets. It returns when both listen.
func serveStreams(name, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if _, err := fmt.Fprintln(c, name); err == nil {
					_, _ = io.Copy(c, c)
				}
			}()
		}
	}()
	go func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = packets.WriteTo(fmt.Appendf(nil, "%s\n%s", name, b[:n]), from)
		}
	}()
	return nil
}
