package main

import (
	"fmt"
	"math"
	"time"
)

// reportSection is the result of one section.
type reportSection struct {
	name, title string
	about       string // what is measured
	tables      []table
	charts      []chart
	targets     []targetResult
	notes       []string
}

// table has a head, and rows of the same length.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// targetResult is a figure, its target, and whether the target was met.
type targetResult struct {
	what, target, value string
	met                 bool
}

func (v targetResult) word() string {
	switch {
	case v.value == unknown:
		return "not measured"
	case v.met:
		return "pass"
	default:
		return "**miss**"
	}
}

func (sec *reportSection) note(format string, args ...any) {
	sec.notes = append(sec.notes, fmt.Sprintf(format, args...))
}

// ratioAtMost and the methods below compare a figure with its target. A figure that
// was not measured does not pass.
func (sec *reportSection) ratioAtMost(what string, value, limit float64) {
	sec.targets = append(sec.targets, targetResult{what, "≤ " + formatRatio(limit), formatRatio(value), value <= limit})
}

func (sec *reportSection) ratioAtLeast(what string, value, limit float64) {
	sec.targets = append(sec.targets, targetResult{what, "≥ " + formatRatio(limit), formatRatio(value), value >= limit})
}

func (sec *reportSection) atMost(what string, value, limit float64, unit string) {
	text := unknown
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		text = formatNumber(value) + unit
	}
	sec.targets = append(sec.targets, targetResult{what, "≤ " + formatNumber(limit) + unit, text, value <= limit})
}

func (sec *reportSection) atLeast(what string, value, limit float64) {
	sec.targets = append(sec.targets, targetResult{what, "≥ " + formatNumber(limit), formatNumber(value), value >= limit})
}

func (sec *reportSection) within(what string, value, limit time.Duration) {
	sec.targets = append(sec.targets, targetResult{what, "≤ " + formatDuration(limit), formatDuration(value), value > 0 && value <= limit})
}
