package main

import "math"

// series are the rates of one peer, one for each round; NaN for a round without a
// result.
type series []float64

func (s series) withoutNaN() series {
	var out series
	for _, v := range s {
		if !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// median is the median over the rounds, NaN if there are none.
func (s series) median() float64 {
	if len(s.withoutNaN()) == 0 {
		return math.NaN()
	}
	return median(s.withoutNaN())
}

// ratioTo is the median over the rounds of the ratio to the other's rate in the
// same round.
func (s series) ratioTo(other series) float64 {
	var ratios series
	for i := range min(len(s), len(other)) {
		ratios = append(ratios, ratio(s[i], other[i]))
	}
	return ratios.median()
}
