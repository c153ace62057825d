package main

import "syscall"

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
const prSetChildSubreaper = 36

// becomeSubreaper makes this process the parent of the command's orphans. In a
// container whose first process waits for no orphans, dead processes of the group
// would stay zombies. They would look alive, and delay the release.
func becomeSubreaper() {
	// If it fails, the release may be late, and nothing else.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
}
