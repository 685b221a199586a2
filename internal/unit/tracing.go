package unit

import "github.com/headgate/headgate/internal/model"

// packedTracing is what lua/headgate/tracing.lua reads of the settings of tracing.
type packedTracing struct {
	// Ratio is the share of the traces that are sampled.
	Ratio       float64 `json:"ratio"`
	ParentBased bool    `json:"parent_based,omitempty"`
	QueueSize   int     `json:"queue_size"`
}

// packTracing packs how requests are sampled, nil if no request can have spans.
func packTracing(t model.Tracing) *packedTracing {
	if !t.HasCollector {
		return nil
	}
	packed := packedTracing{ParentBased: t.ParentBased || t.Sampler == model.SampleParent, QueueSize: t.QueueSize}
	switch t.Sampler {
	case model.SampleAll, model.SampleParent:
		packed.Ratio = 1
	case model.SampleRatio:
		packed.Ratio = t.Ratio
	case model.SampleNone:
	}
	return &packed
}
