package main

import (
	"fmt"
	"math"
	"time"
)

// chapter is what one section has to say.
type chapter struct {
	name, title string
	work        string // what is measured
	tables      []table
	charts      []chart
	verdicts    []verdict
	notes       []string
}

// table has a head and rows of as many cells.
type table struct {
	title string
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// verdict holds a figure beside its target.
type verdict struct {
	what, target, value string
	met                 bool
}

func (v verdict) word() string {
	switch {
	case v.value == unknown:
		return "not measured"
	case v.met:
		return "pass"
	default:
		return "**miss**"
	}
}

func (c *chapter) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// ratioAtMost and its like judge a figure. What was not measured is no pass.
func (c *chapter) ratioAtMost(what string, value, limit float64) {
	c.verdicts = append(c.verdicts, verdict{what, "≤ " + formatRatio(limit), formatRatio(value), value <= limit})
}

func (c *chapter) ratioAtLeast(what string, value, limit float64) {
	c.verdicts = append(c.verdicts, verdict{what, "≥ " + formatRatio(limit), formatRatio(value), value >= limit})
}

func (c *chapter) atMost(what string, value, limit float64, unit string) {
	text := unknown
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		text = formatNumber(value) + unit
	}
	c.verdicts = append(c.verdicts, verdict{what, "≤ " + formatNumber(limit) + unit, text, value <= limit})
}

func (c *chapter) atLeast(what string, value, limit float64) {
	c.verdicts = append(c.verdicts, verdict{what, "≥ " + formatNumber(limit), formatNumber(value), value >= limit})
}

func (c *chapter) within(what string, value, limit time.Duration) {
	c.verdicts = append(c.verdicts, verdict{what, "≤ " + formatDuration(limit), formatDuration(value), value > 0 && value <= limit})
}
