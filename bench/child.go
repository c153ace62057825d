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

// exitTimeout is how long a child may take to exit by itself.
const exitTimeout = 3 * time.Second

// child is a process that exits at the end of its input.
type child struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
	errors tail
	ended  chan struct{}
	once   sync.Once
}

// start starts a process on the given processors, on all if there are none.
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
	cmd.SysProcAttr = childProcAttr()
	if len(cpus) == 0 {
		err = cmd.Start()
	} else {
		err = startPinned(cmd, cpus)
	}
	return c, err
}

// roleCommand runs this program in another role.
func roleCommand(role string, given any) (*exec.Cmd, error) {
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

// readJSON reads a line of the output into v.
func (c *child) readJSON(v any) error {
	text, err := c.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%w; it wrote: %s", err, c.errors.String())
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%w in %q", err, text)
	}
	return nil
}

// drain reads the output to its end. That must happen before Wait, which closes
// the pipe.
func (c *child) drain() {
	_, _ = io.Copy(io.Discard, c.output)
	close(c.ended)
}

// stop closes the input, and kills the process if it does not exit in time.
func (c *child) stop() {
	c.once.Do(func() {
		_ = c.input.Close() // the process may have exited
		select {
		case <-c.ended:
		case <-time.After(exitTimeout):
		}
		c.finish()
	})
}

// kill kills the process at once.
func (c *child) kill() {
	c.once.Do(c.finish)
}

func (c *child) finish() {
	_ = c.cmd.Process.Kill() // it may have exited
	<-c.ended
	_ = c.cmd.Wait() // usually an error, as it was killed
}

// tail keeps the last bytes that a process wrote.
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

var errProcessEnded = errors.New("the process has ended")
