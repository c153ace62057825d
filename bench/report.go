package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// report is the report of one run.
type report struct {
	machine  []string
	peers    []*peer
	skipped  map[string]string
	sections []*reportSection
}

// write writes the report and its plots into a folder.
func (r *report) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, sec := range r.sections {
		for i := range sec.charts {
			if err := os.WriteFile(filepath.Join(folder, sec.plot(i)), []byte(sec.charts[i].svg()), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(folder, "README.md"), []byte(r.markdown()), 0o644)
}

// plot is the file name of a chart.
func (sec *reportSection) plot(i int) string {
	if i == 0 {
		return sec.name + ".svg"
	}
	return fmt.Sprintf("%s-%d.svg", sec.name, i+1)
}

const reportIntro = `# What tether costs, compared with its peers

Written by ` + "`cd bench && go run .`" + `. All peers used the same Redis in one run. They took turns in rounds, and each
round had another order. A p50 is the median of the rounds' medians, a ratio is the median of the ratios within a round, a p99
is over all samples. "Unpinned": the scheduler chooses the processors. "Pinned": the servers run on one processor and the
clients on another, so that every wake-up crosses processors. "raw" is no library: sockets that send the least that a lock
of this kind can send. It is the floor that the figures are compared with.
`

func (r *report) markdown() string {
	var out strings.Builder
	out.WriteString(reportIntro)
	out.WriteString("\n## The machine\n\n")
	for _, line := range r.machine {
		fmt.Fprintf(&out, "- %s\n", line)
	}
	out.WriteString("\n## The targets\n\n")
	out.WriteString(r.targets().markdown())
	for _, sec := range r.sections {
		out.WriteString(sec.markdown(true))
	}
	out.WriteString("\n## The peers\n\n")
	t := table{head: []string{"peer", "setting"}}
	for _, p := range r.peers {
		about := p.about
		if why := r.skipped[p.id()]; why != "" {
			about += " (left out: " + why + ")"
		}
		t.add(p.id(), about)
	}
	out.WriteString(t.markdown())
	out.WriteString("\nRedisson is left out: it would bring a Java toolchain into a Go module's benchmark.\n")
	return out.String()
}

// targets is a table of the target results of all sections.
func (r *report) targets() *table {
	t := &table{head: []string{"section", "figure", "target", "measured", ""}}
	for _, sec := range r.sections {
		for _, v := range sec.targets {
			t.add(sec.title, v.what, v.target, v.value, v.word())
		}
	}
	return t
}

// markdown is the section as Markdown, with or without its plots.
func (sec *reportSection) markdown(plots bool) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n## %s\n\n%s\n", sec.title, sec.about)
	for i := range sec.tables {
		if title := sec.tables[i].title; title != "" {
			fmt.Fprintf(&out, "\n%s:\n", title)
		}
		out.WriteString("\n" + sec.tables[i].markdown())
	}
	if len(sec.targets) > 0 {
		t := table{head: []string{"figure", "target", "measured", ""}}
		for _, v := range sec.targets {
			t.add(v.what, v.target, v.value, v.word())
		}
		out.WriteString("\n" + t.markdown())
	}
	for i := range sec.charts {
		if plots {
			fmt.Fprintf(&out, "\n![%s](%s)\n", sec.charts[i].title, sec.plot(i))
		}
	}
	for _, note := range sec.notes {
		fmt.Fprintf(&out, "\n%s\n", note)
	}
	return out.String()
}

// markdown is the table as Markdown. Columns are padded, so that it can be read as
// plain text.
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
