package interop

import "syscall"

// childAttr makes the kernel end a process with the test binary, also one that
// is stopped.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
