package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// percentile is the nearest-rank percentile p (0 to 100) of the values, 0 if there
// are none.
func percentile[T cmp.Ordered](values []T, p float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median is the middle value, or the lower of the two in the middle.
func median[T cmp.Ordered](values []T) T { return percentile(values, 50) }

// jain is Jain's fairness index of the counts: 1 if all are equal, 1/n if one has
// everything, 0 if all are 0.
func jain(counts []int) float64 {
	var sum, squares float64
	for _, c := range counts {
		sum += float64(c)
		squares += float64(c) * float64(c)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(counts)) * squares)
}

// rounds are the samples of one peer with one workload, round by round.
type rounds [][]time.Duration

// median is the median of the rounds' medians, so that a round disturbed by
// something else on the machine counts as one round only.
func (r rounds) median() time.Duration {
	return median(r.medians())
}

func (r rounds) medians() []time.Duration {
	var out []time.Duration
	for _, one := range r {
		if len(one) > 0 {
			out = append(out, median(one))
		}
	}
	return out
}

// percentile is a percentile over all samples.
func (r rounds) percentile(p float64) time.Duration {
	return percentile(slices.Concat(r...), p)
}

// ratioTo is the median over the rounds of the ratio to the other's median in the
// same round, NaN without a common round.
func (r rounds) ratioTo(other rounds) float64 {
	var ratios []float64
	for i := range min(len(r), len(other)) {
		if len(r[i]) > 0 && len(other[i]) > 0 {
			ratios = append(ratios, ratio(median(r[i]), median(other[i])))
		}
	}
	if len(ratios) == 0 {
		return math.NaN()
	}
	return median(ratios)
}

// ratio is NaN if b is 0.
func ratio[T ~int | ~int64 | ~float64](a, b T) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}
