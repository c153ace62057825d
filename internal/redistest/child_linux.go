package redistest

import "syscall"

// childAttr makes the kernel end the server with the test binary, which runs
// no cleanup when it panics, times out or is killed.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
