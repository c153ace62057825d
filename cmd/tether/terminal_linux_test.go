package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// console is a terminal with somebody at it.
type console struct {
	file  *os.File
	lines chan string
}

// atTerminal starts a command as the first process of a terminal's session.
func (s server) atTerminal(t *testing.T, args ...string) (*console, *exec.Cmd) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	var number, unlock int32
	ioctl(t, keyboard, syscall.TIOCGPTN, &number)
	ioctl(t, keyboard, syscall.TIOCSPTLCK, &unlock)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.Env = append(os.Environ(), urlVariable+"="+s.url, "TETHER="+binary, "PS1=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	c := &console{keyboard, make(chan string, 100)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewScanner(keyboard); in.Scan(); {
			c.lines <- strings.TrimSpace(in.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // how is told by those who ask
		_ = keyboard.Close()   // hangs up
		<-read
	})
	return c, cmd
}

func ioctl(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
		require.Zero(t, errno)
	}))
}

func (c *console) types(t *testing.T, text string) {
	t.Helper()
	_, err := c.file.WriteString(text)
	require.NoError(t, err)
}

// shows waits for a line that contains a text.
func (c *console) shows(t *testing.T, text string) string {
	t.Helper()
	limit := time.After(15 * time.Second)
	for {
		select {
		case line := <-c.lines:
			if strings.Contains(line, text) {
				return line
			}
		case <-limit:
			require.Failf(t, "not shown", "%q", text)
		}
	}
}

// A command may read the terminal although its group is not the one that the
// terminal belongs to.
func TestCommandReadsTheTerminal(t *testing.T) {
	s := embedded(t)
	c, cmd := s.atTerminal(t, binary, "run", "x", "--", "sh", "-c", `echo ready; read -r line; echo "got <$line>"; read -r line; echo "and <$line>"; exit 4`)
	c.shows(t, "ready")
	c.types(t, "one\n")
	c.shows(t, "got <one>")
	c.types(t, "two\n")
	c.shows(t, "and <two>")
	_ = cmd.Wait()
	require.Equal(t, 4, cmd.ProcessState.ExitCode())
}

// When the terminal goes, so does the command, and the lock with it: nothing
// stays stopped for ever.
func TestTerminalHangsUp(t *testing.T) {
	s := embedded(t)
	for _, background := range []string{"", " &"} {
		c, shell := s.atTerminal(t, "sh", "-i")
		c.types(t, `"$TETHER" run x -- sh -c 'echo pid:$$,$PPID; read -r line'`+background+"\n")
		var pid, parent int
		for pid == 0 {
			_, _ = fmt.Sscanf(c.shows(t, "pid:"), "pid:%d,%d", &pid, &parent)
		}
		if background != "" {
			until(t, func() bool { return stopped(pid) && stopped(parent) }, "both stop")
		}
		require.NoError(t, shell.Process.Kill())
		_ = shell.Wait() // killed
		dead(t, pid, parent)
		require.Empty(t, s.holders(t, "x"))
	}
}

// Ctrl-C reaches the command before and after it has read the terminal.
func TestInterruptAtTheTerminal(t *testing.T) {
	s := embedded(t)
	for _, reads := range []string{"", "read -r line; "} {
		c, cmd := s.atTerminal(t, binary, "run", "x", "--", "sh", "-c", `trap "echo interrupted; exit 6" INT; echo ready; `+reads+`echo waits; sleep 1000 & wait`)
		c.shows(t, "ready")
		if reads != "" {
			c.types(t, "\n")
		}
		c.shows(t, "waits")
		c.types(t, "\x03")
		c.shows(t, "interrupted")
		_ = cmd.Wait()
		require.Equal(t, 6, cmd.ProcessState.ExitCode())
	}
}

// Ctrl-Z stops tether run and its command, as the shell wants it, and fg goes
// on with both, whether the command has read the terminal or not. Afterwards
// the shell has its terminal again.
func TestStopAtTheTerminal(t *testing.T) {
	s := embedded(t)
	for _, reads := range []string{"", "read -r line; "} {
		c, _ := s.atTerminal(t, "sh", "-i")
		c.types(t, `"$TETHER" run x -- sh -c 'echo pid:$$; `+reads+`trap "echo ends; exit 0" USR1; echo waits; sleep 1000 & wait'`+"\n")
		var pid int
		for pid == 0 {
			_, _ = fmt.Sscanf(c.shows(t, "pid:"), "pid:%d", &pid) // the first is the echo of what was typed
		}
		if reads != "" {
			c.types(t, "\n")
		}
		c.shows(t, "waits")
		c.types(t, "\x1a")
		c.shows(t, "Stopped")
		until(t, func() bool { return stopped(pid) }, "the command stops")
		c.types(t, "echo shell $((40+2))\n")
		c.shows(t, "shell 42")
		c.types(t, "fg\n")
		until(t, func() bool { return !stopped(pid) }, "the command goes on")
		require.NoError(t, syscall.Kill(pid, syscall.SIGUSR1))
		c.shows(t, "ends")
		c.types(t, "echo end $((40+3))\n")
		c.shows(t, "end 43")
		c.types(t, "exit\n")
	}
}

// The output of a background job that reads the terminal waits for fg.
func TestBackgroundJobReadsTheTerminal(t *testing.T) {
	s := embedded(t)
	c, _ := s.atTerminal(t, "sh", "-i")
	c.types(t, `"$TETHER" run x -- sh -c 'echo pid:$$,$PPID; read -r line; echo "got <$line>"' &`+"\n")
	var pid, parent int
	for pid == 0 {
		_, _ = fmt.Sscanf(c.shows(t, "pid:"), "pid:%d,%d", &pid, &parent)
	}
	until(t, func() bool { return stopped(pid) && stopped(parent) }, "both stop")
	c.types(t, "echo shell $((40+2))\n")
	c.shows(t, "shell 42")
	c.types(t, "fg\n")
	until(t, func() bool { return !stopped(pid) }, "the command goes on")
	c.types(t, "typed\n")
	c.shows(t, "got <typed>")
	c.types(t, "exit\n")
}
