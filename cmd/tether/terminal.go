//go:build unix && !aix && !solaris

package main

import (
	"os/signal"
	"syscall"
	"unsafe"
)

// terminal is the controlling terminal, which is opened when it is first
// asked for.
type terminal struct {
	fd     int  // -1 until then
	lent   bool // the command is in its foreground
	wanted bool // the command has been there, and wants to be again
}

func (t *terminal) exists() bool {
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
	if !t.exists() || !t.control(syscall.TIOCGPGRP, &pgid) {
		return 0
	}
	return int(pgid)
}

// lend brings a group into the foreground. This process must be there.
func (t *terminal) lend(pgid int) {
	id := int32(pgid)
	t.lent = t.control(syscall.TIOCSPGRP, &id)
	t.wanted = false
}

// takeBack brings this process's group into the foreground again. For a
// process in the background that is forbidden unless it ignores the signal.
func (t *terminal) takeBack() {
	if !t.lent {
		return
	}
	t.lent = false
	signal.Ignore(syscall.SIGTTOU) // for good: nothing is started any more
	id := int32(syscall.Getpgrp())
	t.control(syscall.TIOCSPGRP, &id)
}

func (t *terminal) control(request uintptr, pgid *int32) bool {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(t.fd), request, uintptr(unsafe.Pointer(pgid)))
	return errno == 0
}
