package controller

import (
	"errors"
	"time"

	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/nginx"
)

// TryBy has a process test directives alone.
func TryBy(process *nginx.Process) feature.Try {
	return func(t feature.Trial) error {
		files := map[string][]byte{}
		for _, c := range t.Files {
			files[directive.Files+"/"+c.Name] = c.Bytes
		}
		return process.Try(nginx.Trial{Lines: t.Lines, Files: files})
	}
}

// trials are the tests of directives while hosts are built. A test that could not be made, such
// as with a full disk, denies the paths that need it, and their hosts are built again later.
type trials struct {
	try feature.Try
	// took is how long the trials of the host that is being built took, and failed is set
	// where one of them could not be made.
	took   time.Duration
	failed bool
	// untried are the hosts with such trials, with the namespaces whose turns they were in.
	untried map[string]string
	again   retry
}

func (t *trials) run(of feature.Trial) error {
	began := time.Now()
	err := t.try(of)
	t.took += time.Since(began)
	var rejected *nginx.ConfError
	if err != nil && !errors.As(err, &rejected) {
		t.failed = true
	}
	return err
}

// built notes that a host was built, and returns how long its trials took.
func (t *trials) built(host, namespace string) time.Duration {
	took, failed := t.took, t.failed
	t.took, t.failed = 0, false
	if !failed {
		if delete(t.untried, host); len(t.untried) == 0 {
			t.again.done()
		}
		return took
	}
	if t.untried == nil {
		t.untried = map[string]string{}
	}
	t.untried[host] = namespace
	if t.again.due == nil {
		t.again.later()
	}
	return took
}

// tryAgain has the hosts built again whose trials could not be made.
func (c *Controller) tryAgain() {
	c.trials.again.due = nil
	for host, namespace := range c.trials.untried {
		c.backlog.add(host, namespace, time.Now())
	}
	c.build(nil)
}
