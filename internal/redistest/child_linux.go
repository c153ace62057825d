package redistest

import "syscall"

// childAttr makes the kernel kill the server when the test binary ends. A test
// binary that panics, times out or is killed runs no cleanup.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
