package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// patience is how long a child may take to end by itself.
const patience = 3 * time.Second

// child is a process that ends when its input does.
type child struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
	errors tail
	ended  chan struct{}
	once   sync.Once
}

// start starts a process, on some processors only unless there are none named.
func start(cmd *exec.Cmd, cpus []int) (*child, error) {
	c := &child{cmd: cmd, ended: make(chan struct{})}
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.input, c.output = input, bufio.NewReaderSize(output, 1<<16)
	cmd.Stderr = &c.errors
	cmd.SysProcAttr = childAttr()
	if len(cpus) == 0 {
		err = cmd.Start()
	} else {
		err = startOn(cmd, cpus)
	}
	return c, err
}

// self is this program in another role.
func self(role string, given any) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, setupVariable+"="+string(text))
	return cmd, nil
}

// line reads a line of the output into v.
func (c *child) line(v any) error {
	text, err := c.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%w; it wrote: %s", err, c.errors.String())
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w in %q", err, text)
	}
	return nil
}

// drain reads the output to its end. It must run before the process is waited
// for.
func (c *child) drain() {
	_, _ = io.Copy(io.Discard, c.output)
	close(c.ended)
}

// end ends the process: by itself if it does so in time.
func (c *child) end() {
	c.once.Do(func() {
		_ = c.input.Close() // it may be gone already
		select {
		case <-c.ended:
		case <-time.After(patience):
		}
		c.finish()
	})
}

// kill ends the process at once.
func (c *child) kill() {
	c.once.Do(c.finish)
}

func (c *child) finish() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
	_ = c.cmd.Wait() // killed, as a rule
}

// tail keeps the end of what a process wrote.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 1 << 14

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - tailSize; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

var errEnded = errors.New("the process has ended")
