package traffic

import "math"

// A native is a histogram whose buckets grow in width by a factor. Only those with values are
// kept.
type native struct {
	schema  int32
	zero    uint64
	buckets map[int]int64
}

const (
	minSchema, maxSchema = -4, 8
	// zeroThreshold is the usual one of Prometheus' clients: the values are 0 or far larger.
	zeroThreshold = 2.938735877055719e-39
)

// Schema is the resolution whose buckets grow at most by a factor that is greater than 1.
func Schema(factor float64) int32 {
	return int32(min(max(math.Floor(-math.Log2(math.Log2(factor))), minSchema), maxSchema))
}

// add adds to a bucket of a schema.
func (n *native) add(schema int32, key int, count uint64, most int) {
	if n.buckets == nil {
		n.schema, n.buckets = schema, map[int]int64{}
	}
	if key == zeroKey {
		n.zero += count
		return
	}
	for s := schema; s > n.schema; s-- {
		key = wider(key)
	}
	n.buckets[key] += int64(count)
	for most > 0 && len(n.buckets) > most && n.schema > minSchema {
		n.widen()
	}
}

// widen makes one bucket of each two.
func (n *native) widen() {
	buckets := make(map[int]int64, len(n.buckets))
	for key, count := range n.buckets {
		buckets[wider(key)] += count
	}
	n.schema--
	n.buckets = buckets
}

// wider is the key of the bucket of twice the width that a bucket is part of.
func wider(key int) int { return int(math.Ceil(float64(key) / 2)) }
