package main

import "math"

// series are the rates of one contender, one for each round. A round that it
// was not in is NaN.
type series []float64

func (s series) known() series {
	var out series
	for _, v := range s {
		if !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

// middle is the median over the rounds, NaN of none.
func (s series) middle() float64 {
	if len(s.known()) == 0 {
		return math.NaN()
	}
	return median(s.known())
}

// against is the median over the rounds of the ratio to another's rate in the
// same round.
func (s series) against(other series) float64 {
	var ratios series
	for i := range min(len(s), len(other)) {
		ratios = append(ratios, ratio(s[i], other[i]))
	}
	return ratios.middle()
}
