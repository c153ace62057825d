package main

import "syscall"

// prSetChildSubreaper is PR_SET_CHILD_SUBREAPER of linux/prctl.h.
const prSetChildSubreaper = 36

// adoptOrphans makes this process the parent of the command's orphans. In a
// container whose first process reaps nobody, dead members of the group would
// else look like living ones, and hold up the release.
func adoptOrphans() {
	// Without it, the release is late, and nothing else.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
}
