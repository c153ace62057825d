//go:build unix && !aix && !solaris && !linux

package main

import (
	"os/exec"
	"strconv"
	"strings"
)

// processes calls f with the id, the parent's id and the state of every one.
func processes(f func(pid, parent int, state string)) {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			pid, _ := strconv.Atoi(fields[0])
			parent, _ := strconv.Atoi(fields[1])
			f(pid, parent, fields[2])
		}
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	runs := false
	processes(func(p, _ int, state string) { runs = runs || p == pid && !strings.HasPrefix(state, "Z") })
	return runs
}

// children returns the processes that a process has started and that run.
func children(pid int) []int {
	var list []int
	processes(func(p, parent int, state string) {
		if parent == pid && !strings.HasPrefix(state, "Z") {
			list = append(list, p)
		}
	})
	return list
}

// stopped reports whether a process is stopped.
func stopped(pid int) bool {
	is := false
	processes(func(p, _ int, state string) { is = is || p == pid && strings.HasPrefix(state, "T") })
	return is
}
