package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// serveStreams answers TCP connections and datagrams of a port, and TLS connections of another
// one, until the program ends: with its name and a newline, and then with what it gets. It
// returns when all listen.
func serveStreams(name, address, secureAddress string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	own, err := certificate()
	if err != nil {
		return err
	}
	secure, err := tls.Listen("tcp", secureAddress, &tls.Config{Certificates: []tls.Certificate{own}})
	if err != nil {
		return err
	}
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go echoAll(listener, name)
	go echoAll(secure, name)
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

func echoAll(listener net.Listener, name string) {
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
}

// certificate makes one for any name.
func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
