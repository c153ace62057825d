package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress is a line that says what is going on. Where it cannot be written
// over, it is written now and then.
type progress struct {
	out      io.Writer
	terminal bool
	begin    time.Time
	written  time.Time
	section  string
}

const progressPause = 5 * time.Second

func newProgress(out *os.File) *progress {
	p := &progress{out: out, begin: time.Now()}
	if info, err := out.Stat(); err == nil {
		p.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) begins(section string) {
	p.section, p.written = section, time.Time{}
}

// say tells what is going on. An error to write it matters to nobody.
func (p *progress) say(format string, args ...any) {
	elapsed := time.Since(p.begin).Truncate(time.Second)
	text := fmt.Sprintf("%5s  %s: %s", elapsed, p.section, fmt.Sprintf(format, args...))
	switch {
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%.100s", text)
	case time.Since(p.written) > progressPause:
		p.written = time.Now()
		_, _ = fmt.Fprintln(p.out, text)
	}
}

func (p *progress) done() {
	if p.terminal {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
