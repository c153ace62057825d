package interop

import "syscall"

// childAttr makes the kernel kill a process when the test binary ends. A stopped
// process would otherwise stay for ever.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
