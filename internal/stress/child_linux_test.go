package stress

import "syscall"

// childAttr makes the kernel kill a worker when the test binary ends. A stopped
// worker would otherwise stay for ever.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
