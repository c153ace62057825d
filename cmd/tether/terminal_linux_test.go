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

// console is the user's side of a pseudo-terminal.
type console struct {
	file  *os.File
	lines chan string
}

// startAtTerminal starts a command as the leader of a terminal's session.
func (s server) startAtTerminal(t *testing.T, args ...string) (*console, *exec.Cmd) {
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
		_ = cmd.Process.Kill() // it may have ended already
		_ = cmd.Wait()         // tests check ProcessState
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

func (c *console) typeText(t *testing.T, text string) {
	t.Helper()
	_, err := c.file.WriteString(text)
	require.NoError(t, err)
}

// awaitLine waits for a line that contains a text.
func (c *console) awaitLine(t *testing.T, text string) string {
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

// The command can read the terminal, although it starts in the background.
func TestCommandReadsTheTerminal(t *testing.T) {
	s := embedded(t)
	c, cmd := s.startAtTerminal(t, binary, "run", "x", "--", "sh", "-c", `echo ready; read -r line; echo "got <$line>"; read -r line; echo "and <$line>"; exit 4`)
	c.awaitLine(t, "ready")
	c.typeText(t, "one\n")
	c.awaitLine(t, "got <one>")
	c.typeText(t, "two\n")
	c.awaitLine(t, "and <two>")
	_ = cmd.Wait()
	require.Equal(t, 4, cmd.ProcessState.ExitCode())
}

// When the terminal hangs up, the command ends and the lock is released, also if
// both processes were stopped.
func TestTerminalHangsUp(t *testing.T) {
	s := embedded(t)
	for _, background := range []string{"", " &"} {
		c, shell := s.startAtTerminal(t, "sh", "-i")
		c.typeText(t, `"$TETHER" run x -- sh -c 'echo pid:$$,$PPID; read -r line'`+background+"\n")
		var pid, parent int
		for pid == 0 {
			_, _ = fmt.Sscanf(c.awaitLine(t, "pid:"), "pid:%d,%d", &pid, &parent)
		}
		if background != "" {
			eventually(t, func() bool { return stopped(pid) && stopped(parent) }, "both stop")
		}
		require.NoError(t, shell.Process.Kill())
		_ = shell.Wait() // killed
		awaitDead(t, pid, parent)
		require.Empty(t, s.holders(t, "x"))
	}
}

// Ctrl-C reaches the command before and after it has read the terminal.
func TestInterruptAtTheTerminal(t *testing.T) {
	s := embedded(t)
	for _, reads := range []string{"", "read -r line; "} {
		c, cmd := s.startAtTerminal(t, binary, "run", "x", "--", "sh", "-c", `trap "echo interrupted; exit 6" INT; echo ready; `+reads+`echo waits; sleep 1000 & wait`)
		c.awaitLine(t, "ready")
		if reads != "" {
			c.typeText(t, "\n")
		}
		c.awaitLine(t, "waits")
		c.typeText(t, "\x03")
		c.awaitLine(t, "interrupted")
		_ = cmd.Wait()
		require.Equal(t, 6, cmd.ProcessState.ExitCode())
	}
}

// Ctrl-Z stops tether run and its command, and fg continues both, whether the
// command has read the terminal or not. In between and afterwards the shell has
// the terminal.
func TestStopAtTheTerminal(t *testing.T) {
	s := embedded(t)
	for _, reads := range []string{"", "read -r line; "} {
		c, _ := s.startAtTerminal(t, "sh", "-i")
		c.typeText(t, `"$TETHER" run x -- sh -c 'echo pid:$$; `+reads+`trap "echo ends; exit 0" USR1; echo waits; sleep 1000 & wait'`+"\n")
		var pid int
		for pid == 0 {
			_, _ = fmt.Sscanf(c.awaitLine(t, "pid:"), "pid:%d", &pid) // the first line is the echo of the input
		}
		if reads != "" {
			c.typeText(t, "\n")
		}
		c.awaitLine(t, "waits")
		c.typeText(t, "\x1a")
		c.awaitLine(t, "Stopped")
		eventually(t, func() bool { return stopped(pid) }, "the command stops")
		c.typeText(t, "echo shell $((40+2))\n")
		c.awaitLine(t, "shell 42")
		c.typeText(t, "fg\n")
		eventually(t, func() bool { return !stopped(pid) }, "the command goes on")
		require.NoError(t, syscall.Kill(pid, syscall.SIGUSR1))
		c.awaitLine(t, "ends")
		c.typeText(t, "echo end $((40+3))\n")
		c.awaitLine(t, "end 43")
		c.typeText(t, "exit\n")
	}
}

// A background job that reads the terminal stops until fg.
func TestBackgroundJobReadsTheTerminal(t *testing.T) {
	s := embedded(t)
	c, _ := s.startAtTerminal(t, "sh", "-i")
	c.typeText(t, `"$TETHER" run x -- sh -c 'echo pid:$$,$PPID; read -r line; echo "got <$line>"' &`+"\n")
	var pid, parent int
	for pid == 0 {
		_, _ = fmt.Sscanf(c.awaitLine(t, "pid:"), "pid:%d,%d", &pid, &parent)
	}
	eventually(t, func() bool { return stopped(pid) && stopped(parent) }, "both stop")
	c.typeText(t, "echo shell $((40+2))\n")
	c.awaitLine(t, "shell 42")
	c.typeText(t, "fg\n")
	eventually(t, func() bool { return !stopped(pid) }, "the command goes on")
	c.typeText(t, "typed\n")
	c.awaitLine(t, "got <typed>")
	c.typeText(t, "exit\n")
}
