package run

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/adminapi/dashboard"
	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/observe/history"
)

// workersTimeout limits a look at NGINX's workers, and workersAge is how old one may be that is
// shown: several people may look at the same time.
const (
	workersTimeout = 3 * time.Second
	workersAge     = 2 * time.Second
)

// A watcher looks at a running controller and at NGINX, when a browser asks.
type watcher struct {
	controller *controller.Controller
	workers    workers
	still      adminapi.Status

	mu    sync.Mutex
	at    time.Time
	found []reports.Answer
}

// overview is what the API shows; nil if nothing is kept.
func (o program) overview(c *controller.Controller, workers workers, nginx string, table *overview.Table, log *history.Log, requests func() map[string]reports.Counts) *adminapi.Overview {
	if table == nil {
		return nil
	}
	w := &watcher{controller: c, workers: workers, still: adminapi.Status{Release: o.build.Version, NGINX: nginx, Started: time.Now(), Source: "cluster"}}
	if o.ManifestsDir != "" {
		w.still.Source = "folder " + o.ManifestsDir
	}
	shown := &adminapi.Overview{Table: table, History: log, Status: w.status, Ejections: w.ejections}
	if requests != nil {
		shown.Rates = overview.NewRates(func() map[string]overview.Counts {
			totals := map[string]overview.Counts{}
			for host, counts := range requests() {
				totals[host] = counts
			}
			return totals
		})
	}
	return shown
}

// look asks all workers, unless that was done just now. Others get the result too, so it does not
// end with the request of one.
func (w *watcher) look(ctx context.Context) []reports.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.at) > workersAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workersTimeout)
		defer cancel()
		w.found, w.at = w.workers(ctx, nil), time.Now()
	}
	return w.found
}

func (w *watcher) status(ctx context.Context) adminapi.Status {
	s := w.still
	s.Now, s.Synced, s.Workers = time.Now(), w.controller.Applied(), []adminapi.Worker{}
	ctx, cancel := context.WithTimeout(ctx, workersTimeout)
	defer cancel()
	if err := w.controller.Check(ctx); err != nil {
		s.Problem = err.Error()
	}
	s.Serving = s.Problem == ""
	for _, answer := range w.look(ctx) {
		if answer.Edge != "" {
			continue // GET /v1/edges has them.
		}
		if answer.Err != nil {
			s.Serving, s.Problem = false, answer.Err.Error()
		}
		for _, h := range answer.Holdings {
			s.Generation = max(s.Generation, h.State.Generation)
			for _, accepting := range h.State.Accepting {
				one := adminapi.Worker{PID: accepting.PID, Generation: accepting.Generation}
				// A killed worker stays in the list.
				if _, err := os.Stat("/proc/" + strconv.Itoa(one.PID)); err == nil && !slices.Contains(s.Workers, one) {
					s.Workers = append(s.Workers, one)
				}
			}
		}
	}
	slices.SortFunc(s.Workers, func(a, b adminapi.Worker) int { return a.PID - b.PID })
	return s
}

// ejections are the endpoints that workers know to fail. The status says why there is nothing of an NGINX.
func (w *watcher) ejections(ctx context.Context) []overview.Ejection {
	var list []overview.Ejection
	for _, answer := range w.look(ctx) {
		for _, h := range answer.Holdings {
			for _, e := range h.State.Ejected {
				why := "no connection can be made"
				if e.Reason != "connect" {
					why = "requests failed in a row"
				}
				list = append(list, overview.Ejection{
					Backend: e.Backend, Endpoint: e.Endpoint, Avoided: e.Avoided,
					Why: fmt.Sprintf("%s, since %s", why, time.Unix(e.Since, 0).UTC().Format(time.TimeOnly)),
				})
			}
		}
	}
	return list
}

// Bounds of what an explanation lists on the page.
const (
	maxEndpoints = 200
	maxFindings  = 50
	maxEdges     = 50
)

// forPage leaves out the values of policies as the data plane has them: the page is for more people
// than the socket. It also bounds lists and texts, and has the worst findings first, and edges that lack something.
func forPage(ask adminapi.Explain) adminapi.Explain {
	return func(ctx context.Context, q explain.Query) (report.Explanation, error) {
		explanation, err := ask(ctx, q)
		if explanation.Route != nil {
			route := *explanation.Route
			route.Carries = nil
			explanation.Route = &route
		}
		explanation.Backends = slices.Clone(explanation.Backends)
		for i := range explanation.Backends {
			b := &explanation.Backends[i]
			b.Endpoints, b.Used = b.Endpoints[:min(len(b.Endpoints), maxEndpoints)], b.Used[:min(len(b.Used), maxEndpoints)]
		}
		edges := slices.Clone(explanation.Edges)
		slices.SortStableFunc(edges, func(a, b report.Edge) int { return lack(a) - lack(b) })
		explanation.Edges = edges[:min(len(edges), maxEdges)]
		explanation.MoreEdges = len(edges) - len(explanation.Edges)
		list := finding.WorstFirst(explanation.Findings)
		shown := list[:min(len(list), maxFindings)]
		explanation.Findings, explanation.MoreFindings = shown, len(list)-len(shown)
		for i, f := range shown {
			shown[i].Field, shown[i].Message, shown[i].Effect = overview.Shorten(f.Field), overview.Shorten(f.Message), overview.Shorten(f.Effect)
		}
		return explanation, err
	}
}

// lack is lower for edges that lack something.
func lack(e report.Edge) int {
	if e.Current() {
		return 1
	}
	return 0
}

// keep makes what the page shows, nil without it.
func (o program) keep() (*overview.Table, *history.Log) {
	if o.DashboardAddress == "" {
		return nil, nil
	}
	return overview.New(), history.New()
}

// startAPI serves the controller's API on a socket until stop is called, and opens the port of
// the page; its server is nil without it.
func (o program) startAPI(socket string, answers adminapi.Answers, log *slog.Logger) (page *dashboard.Server, stop func(), err error) {
	stopAPI, err := adminapi.Start(socket, answers, log)
	if err != nil {
		return nil, nil, err
	}
	page, err = o.startDashboard(answers, log)
	if err != nil {
		stopAPI()
		return nil, nil, err
	}
	return page, func() {
		// There is nothing to do about a port that can't be closed.
		_ = page.Close()
		stopAPI()
	}, nil
}

// startDashboard opens the port of the page; nil without it.
func (o program) startDashboard(answers adminapi.Answers, log *slog.Logger) (*dashboard.Server, error) {
	if o.DashboardAddress == "" {
		return nil, nil
	}
	host, port, err := o.DashboardPlace()
	if err != nil {
		return nil, err
	}
	answers.Explain = forPage(answers.Explain)
	server, err := dashboard.Listen(net.JoinHostPort(host, strconv.Itoa(int(port))), adminapi.Handler(answers), log)
	if err != nil {
		address, parseErr := netip.ParseAddr(host)
		if parseErr == nil {
			err = nginx.ExplainPort(netip.AddrPortFrom(address, port), err)
		}
		return nil, fmt.Errorf("--dashboard-address: %w", err)
	}
	log.Info("the page for people", "url", "http://"+server.Address()+"/")
	return server, nil
}
