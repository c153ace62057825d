package stress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// workerProcess is one of the workers, as the test sees it: it is killed and
// started again. One goroutine owns it.
type workerProcess struct {
	config  config
	name    string
	starts  int
	history *historyFile

	cmd    *exec.Cmd
	input  io.Closer
	errors bytes.Buffer
	ended  chan error
}

// launch starts the process.
func (c *workerProcess) launch() error {
	c.starts++
	c.config.Who = fmt.Sprintf("%s.%d", c.name, c.starts)
	o, err := json.Marshal(c.config)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c.errors.Reset()
	c.cmd = exec.Command(program)
	c.cmd.Env = append(os.Environ(), workerEnv+"="+string(o))
	c.cmd.Stderr = &c.errors
	c.cmd.SysProcAttr = childAttr()
	if c.input, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan<- error) { ended <- cmd.Wait() }(c.cmd, c.ended)
	return nil
}

func (c *workerProcess) add(k kind) { c.history.add(entry{Kind: k, Who: c.config.Who}) }

// freeze stops the process for d, or until done is closed.
func (c *workerProcess) freeze(d time.Duration, done <-chan struct{}) error {
	c.add(stopping)
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wait(d, done)
	err := c.cmd.Process.Signal(syscall.SIGCONT)
	c.add(continued)
	return err
}

// kill kills the process and waits for its end.
func (c *workerProcess) kill() error {
	c.add(killing)
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	<-c.ended
	c.add(killed)
	return nil
}

// await waits for the end of a process whose input was closed. One that does not
// end prints its goroutines (SIGQUIT).
func (c *workerProcess) await(t *testing.T, within time.Duration) {
	select {
	case err := <-c.ended:
		require.NoError(t, err, "%s: %s", c.config.Who, &c.errors)
	case <-time.After(within):
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGQUIT))
		<-c.ended
		require.Failf(t, "a worker does not end", "%s: %s", c.config.Who, &c.errors)
	}
}

// wait waits for d. It returns false at once when done is closed.
func wait(d time.Duration, done <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-done:
		return false
	}
}
