package run

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/admission"
	"github.com/headgate/headgate/internal/admission/review"
	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/observe/metrics"
)

// families are ingress-nginx's metrics of the controller, nil if they are not enabled. There is
// one of the election if the replica takes part in one.
func (o program) families(registry prometheus.Registerer, r *replica) *metrics.Families {
	if !o.EnableMetrics {
		return nil
	}
	pod := podOfEnvironment()
	families := metrics.NewFamilies(registry,
		metrics.Identity{Namespace: pod.Namespace, Class: o.Objects.ControllerClass, Pod: pod.Name},
		metrics.Build{Release: o.build.Version, Commit: o.build.Commit(), Repository: release.Repository})
	if r.elector != nil {
		families.Leader(o.ElectionID, r.leads)
	}
	return families
}

// reporter reports the reviews of the webhook; nil without report.
func reporter(report func(metrics.Review)) func(*networkingv1.Ingress, review.Decision, error, admission.Took) {
	if report == nil {
		return nil
	}
	return func(ing *networkingv1.Ingress, d review.Decision, err error, took admission.Took) {
		report(metrics.Review{
			Namespace: ing.Namespace, Ingress: ing.Name, Passed: err == nil && d.Allowed(),
			Ingresses: d.Measured.Ingresses, Bytes: d.Measured.Bytes, Build: d.Measured.Build,
			Test: took.Review, Total: took.Total,
		})
	}
}
