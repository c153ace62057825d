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

// alive reports whether a process runs. A zombie does not.
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

// stopped reports whether all threads of a process are stopped. The state of the
// process alone is not enough: other threads may still run for a moment.
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
