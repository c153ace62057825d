//go:build unix && !aix && !solaris

package main

import (
	"os/signal"
	"syscall"
	"unsafe"
)

// terminal is the controlling terminal. It is opened at its first use.
type terminal struct {
	fd            int  // -1 before that
	lentToCommand bool // the command is in the foreground
	commandWants  bool // the command was in the foreground before it stopped
}

func (t *terminal) open() bool {
	if t.fd < 0 {
		fd, err := syscall.Open("/dev/tty", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		t.fd = fd
	}
	return true
}

// foreground returns the group in the foreground, 0 if there is no terminal.
func (t *terminal) foreground() int {
	var pgid int32
	if !t.open() || !t.ioctl(syscall.TIOCGPGRP, &pgid) {
		return 0
	}
	return int(pgid)
}

// setForeground brings a group into the foreground. This process must be in the
// foreground itself.
func (t *terminal) setForeground(pgid int) {
	id := int32(pgid)
	t.lentToCommand = t.ioctl(syscall.TIOCSPGRP, &id)
	t.commandWants = false
}

// restoreForeground brings this process's group back into the foreground. The
// kernel sends SIGTTOU to a background process that does that, unless the process
// ignores it.
func (t *terminal) restoreForeground() {
	if !t.lentToCommand {
		return
	}
	t.lentToCommand = false
	signal.Ignore(syscall.SIGTTOU) // and never restored: no process is started after this
	id := int32(syscall.Getpgrp())
	t.ioctl(syscall.TIOCSPGRP, &id)
}

func (t *terminal) ioctl(request uintptr, pgid *int32) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(t.fd), request, uintptr(unsafe.Pointer(pgid)))
	return errno == 0
}
