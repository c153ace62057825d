package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// report is a run, written down.
type report struct {
	machine []string
	peers   []*peer
	left    map[string]string
	book    []*chapter
}

// write writes the report and its plots into a folder.
func (r *report) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, c := range r.book {
		for i := range c.charts {
			if err := os.WriteFile(filepath.Join(folder, c.plot(i)), []byte(c.charts[i].svg()), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(folder, "README.md"), []byte(r.markdown()), 0o644)
}

// plot is the file of a chart.
func (c *chapter) plot(i int) string {
	if i == 0 {
		return c.name + ".svg"
	}
	return fmt.Sprintf("%s-%d.svg", c.name, i+1)
}

const reportIntro = `# What tether costs, beside its peers

Written by ` + "`cd bench && go run .`" + `. All contenders had the same Redis in one run. They took turns, in rounds of
another order each; a p50 is the median of the rounds' medians, a ratio is the median of the ratios within a round, a p99
is over all samples. "Unpinned" is as the scheduler likes; "pinned" has the servers on one processor and the clients on
another, so that a wake-up always crosses. "raw" is no library but sockets that send the least that a lock of this kind
can do; it is what the figures are held against.
`

func (r *report) markdown() string {
	var out strings.Builder
	out.WriteString(reportIntro)
	out.WriteString("\n## The machine\n\n")
	for _, line := range r.machine {
		fmt.Fprintf(&out, "- %s\n", line)
	}
	out.WriteString("\n## The targets\n\n")
	out.WriteString(r.verdicts().markdown())
	for _, c := range r.book {
		out.WriteString(c.markdown(true))
	}
	out.WriteString("\n## The peers\n\n")
	t := table{head: []string{"peer", "setting"}}
	for _, p := range r.peers {
		about := p.about
		if why := r.left[p.id()]; why != "" {
			about += " (left out: " + why + ")"
		}
		t.add(p.id(), about)
	}
	out.WriteString(t.markdown())
	out.WriteString("\nRedisson is left out: it would bring a Java toolchain into a Go module's benchmark.\n")
	return out.String()
}

// verdicts are those of all chapters, in one table.
func (r *report) verdicts() *table {
	t := &table{head: []string{"section", "figure", "target", "measured", ""}}
	for _, c := range r.book {
		for _, v := range c.verdicts {
			t.add(c.title, v.what, v.target, v.value, v.word())
		}
	}
	return t
}

// markdown is the chapter, with its plots if told so.
func (c *chapter) markdown(plots bool) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n%s\n", c.title, c.work)
	for i := range c.tables {
		if title := c.tables[i].title; title != "" {
			fmt.Fprintf(&out, "\n%s:\n", title)
		}
		out.WriteString("\n" + c.tables[i].markdown())
	}
	if len(c.verdicts) > 0 {
		t := table{head: []string{"figure", "target", "measured", ""}}
		for _, v := range c.verdicts {
			t.add(v.what, v.target, v.value, v.word())
		}
		out.WriteString("\n" + t.markdown())
	}
	for i := range c.charts {
		if plots {
			fmt.Fprintf(&out, "\n![%s](%s)\n", c.charts[i].title, c.plot(i))
		}
	}
	for _, note := range c.notes {
		fmt.Fprintf(&out, "\n%s\n", note)
	}
	return out.String()
}

// markdown is the table, with columns as wide as they need to be read as text.
func (t *table) markdown() string {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell), 3)
		}
	}
	var out strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			out.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+1))
		}
		out.WriteString("|\n")
	}
	line(t.head)
	rules := make([]string, len(t.head))
	for i := range rules {
		rules[i] = strings.Repeat("-", widths[i])
	}
	line(rules)
	for _, row := range t.rows {
		line(row)
	}
	return out.String()
}
