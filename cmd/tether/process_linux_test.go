package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat returns the fields of a process from its state on; nil if it is gone.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(text), ") ") // its name may have spaces
	return strings.Fields(rest)
}

// alive says whether a process runs. A dead one that nobody has reaped does
// not.
func alive(pid int) bool {
	fields := stat(pid)
	return fields != nil && fields[0] != "Z" && fields[0] != "X"
}

// children returns the processes that a process has started and that run.
func children(pid int) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var list []int
	for _, dir := range dirs {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if fields := stat(child); fields != nil && fields[1] == strconv.Itoa(pid) && alive(child) {
			list = append(list, child)
		}
	}
	return list
}

// stopped says whether a process has been stopped, with all its threads: to
// the kernel one that is about to stop counts as one that runs.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, thread := range threads {
		id, _ := strconv.Atoi(filepath.Base(thread))
		if fields := stat(id); fields == nil || fields[0] != "T" {
			return false
		}
	}
	return len(threads) > 0
}
