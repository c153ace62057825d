package interop

import (
	"syscall"
	"unsafe"
)

// now is the clock of the history: the machine's monotonic clock, which all
// processes share.
func now() int64 {
	var at syscall.Timespec
	const monotonic = 1
	_, _, err := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, monotonic, uintptr(unsafe.Pointer(&at)), 0)
	if err != 0 {
		panic(err)
	}
	return at.Nano()
}
