package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sampleSection() *reportSection {
	sec := &reportSection{name: "sample", title: "Sample", about: "What is done."}
	t := table{title: "unpinned", head: []string{"peer", "p50"}}
	t.add("tether", "12 µs")
	bars := chart{title: "Times & more", unit: "µs", log: true, series: []string{unpinned, pinned}}
	bars.add("tether", 12)
	bars.add("tether", math.NaN())
	bars.add("<other>", 1200)
	sec.tables, sec.charts = append(sec.tables, t), append(sec.charts, bars)
	sec.ratioAtMost("a ratio", 1.2, 1.15)
	sec.ratioAtLeast("a rate", 2.5, 2)
	sec.within("a time", 3*time.Millisecond, 5*time.Millisecond)
	sec.atMost("nothing", math.NaN(), 8, " kB")
	sec.note("A note.")
	return sec
}

func TestReportIsWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "new")
	r := &report{machine: []string{"a machine"}, peers: allPeers(), skipped: map[string]string{"portalocker": "there is no Python"}, sections: []*reportSection{sampleSection()}}
	require.NoError(t, r.write(folder))
	text, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	for _, want := range []string{
		"- a machine\n",
		"| peer   | p50   |\n| ------ | ----- |\n| tether | 12 µs |\n",
		"| a ratio | ≤ 1.15×  | 1.20×    | **miss**     |\n",
		"| a rate  | ≥ 2.00×  | 2.50×    | pass         |\n",
		"| a time  | ≤ 5000 µs | 3000 µs  | pass         |\n",
		"| nothing | ≤ 8.00 kB | –        | not measured |\n",
		"![Times & more](sample.svg)",
		"\nA note.\n",
		"left out: there is no Python",
	} {
		require.Contains(t, normalizeWidths(string(text)), normalizeWidths(want))
	}
	plot, err := os.ReadFile(filepath.Join(folder, "sample.svg"))
	require.NoError(t, err)
	requireXML(t, string(plot))
	require.Contains(t, string(plot), "&lt;other&gt;")
}

// normalizeWidths removes the padding of columns.
func normalizeWidths(text string) string {
	for strings.Contains(text, "  ") {
		text = strings.ReplaceAll(text, "  ", " ")
	}
	for strings.Contains(text, "--") {
		text = strings.ReplaceAll(text, "--", "-")
	}
	return text
}

func requireXML(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

func TestBars(t *testing.T) {
	c := chart{log: true, series: []string{"one"}}
	c.add("a", 1)
	c.add("b", 10)
	c.add("c", 100)
	require.Zero(t, c.width(math.NaN()))
	require.Zero(t, c.width(0))
	require.InDelta(t, c.width(10)-c.width(1), c.width(100)-c.width(10), 1e-9)
	require.Positive(t, c.width(1))
	linear := chart{series: []string{"one"}}
	linear.add("a", 50)
	linear.add("b", 100)
	require.InDelta(t, linear.width(100), 2*linear.width(50), 1e-9)
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: unknown, 85 * time.Microsecond: "85 µs", 12345 * time.Microsecond: "12.3 ms", 1500 * time.Millisecond: "1.50 s",
	} {
		require.Equal(t, want, formatDuration(d))
	}
	for v, want := range map[float64]string{0: "0", 0.027: "0.027", 6.5: "6.50", 25.46: "25.5", 7793.2: "7793", math.Inf(1): unknown} {
		require.Equal(t, want, formatNumber(v))
	}
}
