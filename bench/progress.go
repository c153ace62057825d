package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress prints what is being measured. On a terminal it overwrites one line;
// elsewhere it prints a line every few seconds.
type progress struct {
	out      io.Writer
	terminal bool
	begin    time.Time
	written  time.Time
	section  string
}

const progressInterval = 5 * time.Second

func newProgress(out *os.File) *progress {
	p := &progress{out: out, begin: time.Now()}
	if info, err := out.Stat(); err == nil {
		p.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) beginSection(section string) {
	p.section, p.written = section, time.Time{}
}

// show prints the current step. Write errors are ignored: the results do not
// depend on it.
func (p *progress) show(format string, args ...any) {
	elapsed := time.Since(p.begin).Truncate(time.Second)
	text := fmt.Sprintf("%5s  %s: %s", elapsed, p.section, fmt.Sprintf(format, args...))
	switch {
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%.100s", text)
	case time.Since(p.written) > progressInterval:
		p.written = time.Now()
		_, _ = fmt.Fprintln(p.out, text)
	}
}

func (p *progress) clear() {
	if p.terminal {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
