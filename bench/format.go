package main

import (
	"fmt"
	"math"
	"time"
)

// unknown is printed where nothing was measured.
const unknown = "–"

func formatDuration(d time.Duration) string {
	switch {
	case d == 0:
		return unknown
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

// formatNumber prints three significant digits, or all digits before the point.
func formatNumber(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unknown
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	case math.Abs(v) >= 10:
		return fmt.Sprintf("%.1f", v)
	case math.Abs(v) >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

func formatRatio(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return unknown
	case v > 0 && v < 0.1:
		return fmt.Sprintf("%.3f×", v)
	default:
		return fmt.Sprintf("%.2f×", v)
	}
}
