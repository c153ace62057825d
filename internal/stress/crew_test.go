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

// crewman is one of the workers, through all its lives. One goroutine owns it.
type crewman struct {
	orders  orders
	name    string
	lives   int
	journal *journal

	cmd    *exec.Cmd
	input  io.Closer
	errors bytes.Buffer
	ended  chan error
}

// launch starts a worker process.
func (c *crewman) launch() error {
	c.lives++
	c.orders.Who = fmt.Sprintf("%s.%d", c.name, c.lives)
	o, err := json.Marshal(c.orders)
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

func (c *crewman) add(k kind) { c.journal.add(entry{Kind: k, Who: c.orders.Who}) }

// freeze stops the process for a while, which ends early with the test.
func (c *crewman) freeze(d time.Duration, over <-chan struct{}) error {
	c.add(stop)
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wait(d, over)
	err := c.cmd.Process.Signal(syscall.SIGCONT)
	c.add(cont)
	return err
}

// kill ends the process at once.
func (c *crewman) kill() error {
	c.add(kill)
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	<-c.ended
	c.add(gone)
	return nil
}

// await waits for the end of a process whose input has ended.
func (c *crewman) await(t *testing.T, within time.Duration) {
	select {
	case err := <-c.ended:
		require.NoError(t, err, "%s: %s", c.orders.Who, &c.errors)
	case <-time.After(within):
		require.NoError(t, c.cmd.Process.Signal(syscall.SIGQUIT))
		<-c.ended
		require.Failf(t, "a worker does not end", "%s: %s", c.orders.Who, &c.errors)
	}
}

// wait waits for a while, or for the end. It returns false at the end.
func wait(d time.Duration, over <-chan struct{}) bool {
	select {
	case <-time.After(d):
		return true
	case <-over:
		return false
	}
}
