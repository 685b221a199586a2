package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// The kinds of requests with the default access log, and beside them, in a process like that,
// without one.
const logged, unlogged = "access log", "no access log"

// loggingKinds are without the one that only shows what the log adds, if short is set.
func loggingKinds(short bool) []requestKind {
	kinds := []requestKind{{name: logged, host: always(hostName(5)), hand: logged}}
	if !short {
		kinds = append(kinds, requestKind{name: unlogged, host: always(hostName(5))})
	}
	return kinds
}

// compareLogging compares with the access log on both sides.
func (s *stage) compareLogging(ctx context.Context, both cpuSides) ([]comparison, error) {
	static, err := s.startStatic(ctx, "static-log", true)
	if err != nil {
		return nil, err
	}
	_, h, err := s.startWithHosts(ctx, "headgate-log", true, exactRouting)
	if err != nil {
		return nil, err
	}
	if err := checkLogs(filepath.Join(s.dir, "static-log"), h.runDir); err != nil {
		return nil, err
	}
	byHand := &side{name: "static, log", instance: static, host: middle}
	product := &side{name: "headgate, log", instance: h.instance, host: middle}
	return []comparison{
		{"access log on both sides", byHand, product, 1.15},
		{"access log: what it adds", beyond(byHand, both.static), beyond(product, both.product), maxLog},
	}, nil
}

// checkLogs makes sure that the NGINX by hand writes the same lines. The arguments are directories.
func checkLogs(static, headgate string) error {
	theirs, err := os.ReadFile(filepath.Join(static, "nginx.conf"))
	if err != nil {
		return err
	}
	ours, err := os.ReadFile(filepath.Join(headgate, "nginx.conf"))
	if err != nil {
		return err
	}
	return checkSameLog(string(theirs), string(ours))
}

// checkSameLog compares the formats. The name of the backend is NGINX's own by hand, which has
// no canaries.
func checkSameLog(static, headgate string) error {
	ours := strings.NewReplacer("[${proxy_upstream_name}]", "[${proxy_host}]", "[${proxy_alternative_upstream_name}]", "[]").Replace(logFormat(headgate))
	ours = regexp.MustCompile(`\$\{(\w+)\}`).ReplaceAllString(strings.Replace(ours, "escape=default ", "", 1), "$$$1")
	if theirs := logFormat(static); ours == "" || ours != theirs {
		return fmt.Errorf("bench/static.conf.tmpl has the log format %q, and Headgate %q", theirs, ours)
	}
	return nil
}

func logFormat(conf string) string {
	return regexp.MustCompile(`log_format upstreaminfo .*;`).FindString(conf)
}

// countLogging counts requests with the access log on both sides; with kinds of two, also
// without one in Headgate.
func (s *stage) countLogging(ctx context.Context, name, profiles string, kinds []requestKind, counted Instructions) error {
	hand, end, err := s.startCountedByHand(ctx, name+"-by-hand", plainNginx{Backend: s.backend, KeepsConnections: true, AccessLog: true})
	if err != nil {
		return err
	}
	hand.profiles = profiles
	counted.Hands[logged], err = hand.count(requestKind{name: "by hand: " + logged, host: kinds[0].host})
	end()
	if err != nil {
		return fmt.Errorf("by hand: %w", err)
	}
	for _, kind := range kinds {
		at, err := s.place(name + "-" + strings.ReplaceAll(kind.name, " ", "-"))
		if err != nil {
			return err
		}
		err = errors.Join(
			writeFolder(at.folder, turnedHosts, s.backend, false, exactRouting),
			os.WriteFile(filepath.Join(at.folder, "options.yaml"), []byte(configMap(kind.name == logged, keepConnections)), 0o644))
		if err != nil {
			return err
		}
		c, stop, err := s.startCounter(ctx, at)
		if err != nil {
			return err
		}
		c.profiles = profiles
		if kind.name == logged {
			err = checkLogs(hand.dir, at.runDir)
		}
		if err == nil {
			err = c.countAll([]requestKind{kind}, counted.Kinds)
		}
		stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// printLogging prints what the access log adds on both sides: the medians of the differences in each
// count.
func printLogging(all []Instructions, to io.Writer) {
	var byHand, ours []float64
	for _, one := range all {
		if one.Kinds[unlogged] > 0 {
			byHand = append(byHand, one.Hands[logged]-one.ByHand)
			ours = append(ours, one.Kinds[logged]-one.Kinds[unlogged])
		}
	}
	if len(ours) > 0 {
		hand, own := medianOf(byHand), medianOf(ours)
		fmt.Fprintf(to, "%-36s %8.0f by hand, %8.0f in Headgate: × %.2f; Headgate's counts: %.0f\n", "what the access log adds", hand, own, own/hand, ours)
	}
}
