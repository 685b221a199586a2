package main

import (
	"math"
	"slices"
)

// percentile is the least value that p percent of the values do not exceed;
// of an even number of values the median is the lower of the middle two. There
// must be values.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func medianOf(values []float64) float64 { return percentile(values, 50) }

// ratiosOf are those of each round. A machine that is slower in some rounds moves the medians of
// two sides apart, but not their ratios.
func ratiosOf(values, base []float64) []float64 {
	ratios := make([]float64, len(values))
	for i, value := range values {
		ratios[i] = value / base[i]
	}
	return ratios
}
