package run

import (
	"context"
	"log/slog"

	"github.com/headgate/headgate/internal/cluster/authority"
	"github.com/headgate/headgate/internal/controller/groups"
	"github.com/headgate/headgate/internal/unit/link"
)

// trust says who is an edge: by files, or by an authority in the cluster, which is kept until ctx ends.
func (o program) trust(ctx context.Context, from from, log *slog.Logger) link.ServerSettings {
	s := link.ServerSettings{Log: log}
	if o.CertificateFiles() {
		s.Source = link.Files(log, o.EdgeCertificate, o.EdgeKey, o.EdgeCA)
		return s
	}
	own := ownNamespace(from.objects.ConfigMap)
	keeper := authority.New(authority.Settings{Client: from.client, Name: o.Authority(own), Timing: authority.DefaultTiming(), Log: log})
	go keeper.Run(ctx)
	reviewer := authority.Reviewer{Client: from.client, Accounts: o.Accounts(own)}
	s.Source, s.Review, s.Renew = keeper.Trust, reviewer.Review, reviewer.Renew
	return s
}

// unknownGroup is the group of namespaces whose objects are not known: a folder need not have them.
func (o program) unknownGroup() string {
	if o.ManifestsDir != "" && o.EdgeGroups() {
		return groups.Default
	}
	return ""
}
