package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// chart is a bar chart: a group of bars for each label, with one bar for each
// series.
type chart struct {
	title, unit string
	log         bool
	series      []string
	labels      []string
	values      map[string][]float64
}

func (c *chart) add(label string, v float64) {
	if c.values == nil {
		c.values = map[string][]float64{}
	}
	if _, ok := c.values[label]; !ok {
		c.labels = append(c.labels, label)
	}
	c.values[label] = append(c.values[label], v)
}

func (c *chart) addLatencies(label string, selected []*peer, byPeer map[string]*latencyWorker, kind string) {
	c.series = append(c.series, label)
	for _, p := range selected {
		c.add(p.id(), microseconds(byPeer[p.id()].samples[kind].median()))
	}
}

// Sizes in pixels.
const (
	chartWidth = 760
	chartLeft  = 170
	chartRight = 90
	chartTop   = 56
	barHeight  = 12
	barGap     = 10
)

var colours = []string{"#2f6fab", "#e0892e", "#4d9a56"}

// svg draws the chart, with horizontal bars and a figure at each.
func (c *chart) svg() string {
	var out strings.Builder
	group := barHeight*len(c.series) + barGap
	height := chartTop + group*len(c.labels) + barGap
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, height)
	scale := ""
	if c.log {
		scale = ", logarithmic"
	}
	c.text(&out, 12, 20, "start", fmt.Sprintf("%s (%s%s)", c.title, c.unit, scale))
	for i, s := range c.series {
		x := chartLeft + 130*i
		fmt.Fprintf(&out, `<rect x="%d" y="32" width="10" height="10" fill="%s"/>`+"\n", x, colours[i%len(colours)])
		c.text(&out, float64(x+16), 41, "start", s)
	}
	for i, label := range c.labels {
		y := chartTop + group*i
		c.text(&out, chartLeft-8, float64(y)+float64(barHeight*len(c.series))/2+4, "end", label)
		for j, v := range c.values[label] {
			c.bar(&out, y+barHeight*j, j, v)
		}
	}
	out.WriteString("</svg>\n")
	return out.String()
}

func (c *chart) bar(out *strings.Builder, y, i int, v float64) {
	width := c.width(v)
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n",
		chartLeft, y, width, barHeight-1, colours[i%len(colours)])
	c.text(out, chartLeft+width+5, float64(y)+barHeight-2, "start", formatNumber(v))
}

// width is the width of a bar. A logarithmic scale starts at half of the smallest
// value, so that its bar is visible.
func (c *chart) width(v float64) float64 {
	if math.IsNaN(v) || v <= 0 {
		return 0
	}
	least, most := math.Inf(1), 0.0
	for _, values := range c.values {
		for _, v := range values {
			if v > 0 {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	const full = chartWidth - chartLeft - chartRight
	if !c.log {
		return full * v / most
	}
	least /= 2
	return full * math.Log(v/least) / math.Log(most/least)
}

func (c *chart) text(out *strings.Builder, x, y float64, anchor, text string) {
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="#222222">%s</text>`+"\n", x, y, anchor, html.EscapeString(text))
}
