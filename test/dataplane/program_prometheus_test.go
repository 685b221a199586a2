package dataplane_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// checkPrometheus: a Prometheus that scrapes two replicas has what dashboards ask for.
func checkPrometheus(t *testing.T, binary string) {
	t.Parallel()
	k := newKinds(t)
	var replicas []*program
	pair := headgatetest.NewKeyPair(t, "webhook", "webhook.test")
	for i := range 2 {
		webhook, flags := webhookFlags(t, pair)
		p := newProgram(t, binary, k.manifests, append(flags, "--enable-metrics")...)
		p.cmd.Env = append(p.cmd.Env, fmt.Sprintf("POD_NAMESPACE=ingress-%d", i), fmt.Sprintf("POD_NAME=headgate-%d", i))
		p.start()
		p.open(true)
		for _, host := range []string{"new.test", "not a name"} {
			review(t, webhook, host)
		}
		replicas = append(replicas, p)
	}
	s := startPrometheus(t, replicas...)
	for _, p := range replicas {
		p.wantHealth("with NGINX", 200, "ok")
		headgatetest.Eventually(t, "no host waits for a reload", func() bool {
			text := p.metrics()
			return strings.Contains(text, "headgate_synced 1\n") && strings.Contains(text, "headgate_waiting_hosts 0\n")
		})
		k.send(p)
		p.checkLines()
	}
	s.checkKinds()
	s.checkFamilies()
	s.checkAlerts()
	changes := 0
	s.checkQueries(func() {
		changes++
		for _, p := range replicas {
			p.write("manifests/changed.yaml", headgatetest.Ingress("changed", "changed.test", fmt.Sprint("/", changes), "one"), 0o644)
			for _, w := range simple() {
				k.ask(p, w)
			}
		}
	})
}

// checkKinds compares the series of both replicas together with the recorded ones.
func (s *prometheus) checkKinds() {
	s.t.Helper()
	const file = "testdata/prometheus/kinds.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	want := string(text)
	var got string
	defer func() {
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("%s (-want +got):\n%s\nGot:\n%s", file, diff, got)
		}
	}()
	headgatetest.Eventually(s.t, "all requests are counted", func() bool {
		got = s.kinds()
		if got != want {
			time.Sleep(scrapes / 4)
		}
		return got == want
	})
	half, err := s.query("sum by (pod, controller_pod, namespace, controller_namespace) (nginx_ingress_controller_requests)")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range half {
		if m := one.Metric; m["pod"] != m["controller_pod"] || m["namespace"] != m["controller_namespace"] || one.number() != half[0].number() {
			s.t.Errorf("of all requests, %s were served by %v", one.number(), m)
		}
	}
	if len(half) != 2 {
		s.t.Errorf("%d replicas", len(half))
	}
}

// kinds are the series of requests, with how many requests and values of each histogram they have.
func (s *prometheus) kinds() string {
	labels := []string{"ingress", "host", "path", "exported_namespace", "exported_service", "canary", "method", "status"}
	families := []string{"requests", "request_duration_seconds_count", "connect_duration_seconds_count", "header_duration_seconds_count", "response_duration_seconds_count",
		"request_size_count", "response_size_count", "bytes_sent_count"}
	counts := map[string][]string{}
	for i, family := range families {
		list, err := s.query("sum by (" + strings.Join(labels, ", ") + ") (nginx_ingress_controller_" + family + ")")
		if err != nil {
			s.t.Fatal(err)
		}
		for _, one := range list {
			var row []string
			for _, label := range labels {
				value := one.Metric[label]
				if value == "" {
					value = "-"
				}
				row = append(row, value)
			}
			key := strings.Join(row, "\t")
			if counts[key] == nil {
				counts[key] = slices.Repeat([]string{"0"}, len(families))
			}
			counts[key][i] = one.number()
		}
	}
	rows := []string{strings.Join(append(labels, families...), "\t")}
	for key, numbers := range counts {
		rows = append(rows, key+"\t"+strings.Join(numbers, "\t"))
	}
	slices.Sort(rows[1:])
	list, err := s.query("sort(sum by (reason) (headgate_uncounted_requests_total))")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range slices.Backward(list) {
		rows = append(rows, "uncounted: "+one.Metric["reason"]+"\t"+one.number())
	}
	return strings.Join(rows, "\n") + "\n"
}
