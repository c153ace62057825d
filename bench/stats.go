package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// percentile is the nearest-rank percentile p (0 to 100) of the values, 0 of
// none.
func percentile[T cmp.Ordered](values []T, p float64) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median is the middle value, or the lower one of the two in the middle.
func median[T cmp.Ordered](values []T) T { return percentile(values, 50) }

// jain is Jain's index of how evenly the counts are spread: 1 when all are the
// same, 1/n when one has everything, and 0 when there is nothing.
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

// rounds are the samples of one contender in one kind of work, round by round.
type rounds [][]time.Duration

// middle is the median over the rounds of the rounds' medians: a round that
// something else on the machine disturbed does not count more than its share.
func (r rounds) middle() time.Duration {
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

// at is a percentile over all samples.
func (r rounds) at(p float64) time.Duration {
	return percentile(slices.Concat(r...), p)
}

// against is the median over the rounds of the ratio to another's median in
// the same round, NaN without a common one.
func (r rounds) against(other rounds) float64 {
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

// ratio is NaN when there is nothing to divide by.
func ratio[T ~int | ~int64 | ~float64](a, b T) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}
