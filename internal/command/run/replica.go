package run

import (
	"context"
	"log/slog"

	"github.com/headgate/headgate/internal/cluster/election"
	"github.com/headgate/headgate/internal/cluster/status"
	"github.com/headgate/headgate/internal/store"
)

// A replica is this process in the election: the leader writes the status of
// Ingresses. A folder needs neither.
type replica struct {
	elector *election.Elector // nil without an election
	writer  *status.Writer    // nil if the status is not written

	leaving chan struct{} // closed to give up the leadership
	left    chan struct{} // closed when that is done
	end     context.CancelFunc
}

// newReplica returns one that takes part in no election.
func newReplica() *replica { return &replica{leaving: make(chan struct{}), left: make(chan struct{})} }

// replica returns a replica that does not take part in the election yet.
func (o program) replica(from from, log *slog.Logger) (*replica, error) {
	r := newReplica()
	if from.client == nil || o.DisableElection {
		return r, nil
	}
	namespace, identity, err := candidate(from.objects.ConfigMap)
	if err != nil {
		return nil, err
	}
	r.elector = election.New(election.Settings{
		Leases: from.client.Leases(namespace), Namespace: namespace, Name: o.ElectionID, Identity: identity,
		TTL: o.ElectionTTL, Log: log,
	})
	if !o.UpdateStatus {
		return r, nil
	}
	place, err := o.AddressSource(knownPod())
	if err != nil {
		return nil, err
	}
	place.Edges = o.EdgeAccounts(namespace)
	if !place.Known() {
		log.Warn("the status of Ingresses is not written: no addresses are configured",
			"allowed", "--publish-service, --publish-status-address, or the environment variables POD_NAME and POD_NAMESPACE with Headgate's Pod")
		return r, nil
	}
	r.writer = status.New(status.Settings{
		Client: from.client, Source: place, Leads: r.elector.Leads, Interval: o.StatusInterval(),
		// The other half is for all other requests.
		Rate: o.KubeAPIQPS / 2, Clear: o.UpdateStatusOnShutdown, Log: log,
	})
	return r, nil
}

// selected passes the selected Ingresses to the writer.
func (r *replica) selected(s store.Selection) {
	if r.writer != nil {
		r.writer.Select(s.Put, s.Gone)
	}
}

// run takes part in the election, as soon as this process serves.
func (r *replica) run(serving <-chan struct{}) {
	ctx, end := context.WithCancel(context.Background())
	r.end = end
	go func() {
		defer close(r.left)
		select {
		case <-serving:
		case <-r.leaving:
		}
		if r.elector != nil {
			r.elector.Run(ctx, r.leaving, r.lead)
		}
	}()
}

func (r *replica) lead(term context.Context) {
	if r.writer != nil {
		r.writer.Lead(term, r.leaving)
		return
	}
	select {
	case <-r.leaving:
	case <-term.Done():
	}
}

// leave gives up the leadership, after the last work of the leader, as long as ctx
// lasts. The channel is closed when that is done.
func (r *replica) leave(ctx context.Context) <-chan struct{} {
	close(r.leaving)
	context.AfterFunc(ctx, r.end)
	return r.left
}

// leads reports whether this process leads.
func (r *replica) leads() bool { return r.elector != nil && r.elector.Leads() }
