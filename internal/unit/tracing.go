package unit

import "github.com/headgate/headgate/internal/model"

// packedTracing is what lua/headgate/tracing.lua reads of the settings of tracing.
type packedTracing struct {
	// Ratio is the share of the traces that are sampled.
	Ratio       float64 `json:"ratio"`
	ParentBased bool    `json:"parent_based,omitempty"`
	QueueSize   int     `json:"queue_size"`
}

// usualTracing is how requests are sampled without keys. tracing.lua has the same.
func usualTracing() packedTracing { return packedTracing{Ratio: 1, ParentBased: true, QueueSize: 2048} }

// packTracing packs how requests are sampled, nil for what is usual: whether there is a collector
// does not count, since not all who build the unit know that.
func packTracing(t model.Tracing) *packedTracing {
	packed := packedTracing{ParentBased: t.ParentBased || t.Sampler == model.SampleParent, QueueSize: t.QueueSize}
	switch t.Sampler {
	case model.SampleAll, model.SampleParent:
		packed.Ratio = 1
	case model.SampleRatio:
		packed.Ratio = t.Ratio
	case model.SampleNone:
	default:
		return nil
	}
	if packed == usualTracing() {
		return nil
	}
	return &packed
}
