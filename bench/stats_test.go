package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercentile(t *testing.T) {
	values := []int{30, 10, 50, 20, 40}
	for p, want := range map[float64]int{0: 10, 1: 10, 20: 10, 21: 20, 50: 30, 99: 50, 100: 50} {
		require.Equal(t, want, percentile(values, p), "p%v", p)
	}
	require.Equal(t, []int{30, 10, 50, 20, 40}, values, "the values stay as they are")
	require.Zero(t, percentile([]int{}, 50))
	require.Equal(t, 2, median([]int{4, 3, 2, 1}))
}

func TestJain(t *testing.T) {
	require.InDelta(t, 1, jain([]int{7, 7, 7, 7}), 1e-9)
	require.InDelta(t, 0.25, jain([]int{9, 0, 0, 0}), 1e-9)
	require.InDelta(t, 0.9, jain([]int{1, 2}), 1e-9)
	require.Zero(t, jain([]int{0, 0}))
	require.Zero(t, jain(nil))
}

func TestRoundsAreComparedRoundByRound(t *testing.T) {
	// The third round was disturbed for both.
	it := rounds{{2, 2, 2}, {2, 2, 2}, {200, 200, 200}, {}}
	other := rounds{{1, 1, 1}, {1, 1, 1}, {100, 100, 100}}
	require.InDelta(t, 2, it.ratioTo(other), 1e-9)
	require.Equal(t, time.Duration(2), it.median())
	require.Equal(t, time.Duration(200), it.percentile(99))
	require.True(t, math.IsNaN(it.ratioTo(nil)))
}

func TestSeriesLeaveOutWhatIsUnknown(t *testing.T) {
	nan := math.NaN()
	require.InDelta(t, 3, series{nan, 3, 4}.median(), 1e-9)
	require.InDelta(t, 0.5, series{1, 2, nan}.ratioTo(series{2, 4, 8}), 1e-9)
	require.True(t, math.IsNaN(series{nan}.median()))
}
