package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// reportedModules are the modules whose versions the report names.
var reportedModules = []string{
	"github.com/redis/go-redis/v9", "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4",
	"github.com/redis/rueidis", "go.etcd.io/etcd/client/v3", "go.etcd.io/etcd/server/v3",
}

// describeRun describes the machine, the versions and the time of the run.
func describeRun(o options, begin time.Time, load string) []string {
	lines := []string{
		fmt.Sprintf("%s, %s/%s, %d processors%s", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), processorModel()),
		redisVersion(),
		fmt.Sprintf("%s, %d rounds, timed runs of %v; it took %v",
			begin.UTC().Format("2 January 2006"), o.rounds, o.duration, time.Since(begin).Round(time.Second)),
		"load when it began: " + load + "; when it ended: " + loadAverage(),
	}
	if o.quick {
		lines = append(lines, "a quick run: the figures say little")
	}
	return append(lines, strings.Join(versions(), ", "))
}

func versions() []string {
	var out []string
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, dep := range info.Deps {
		if slices.Contains(reportedModules, dep.Path) {
			out = append(out, dep.Path+" "+dep.Version)
		}
	}
	return out
}

func redisVersion() string {
	text, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "Redis of an unknown version"
	}
	for selected := range strings.FieldsSeq(string(text)) {
		if v, ok := strings.CutPrefix(selected, "v="); ok {
			return "Redis " + v
		}
	}
	return strings.TrimSpace(string(text))
}

// processorModel is the processor's name, empty if it is unknown.
func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return " (" + strings.TrimSpace(model) + ")"
		}
	}
	return ""
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return unknown
	}
	if fields := strings.Fields(string(text)); len(fields) > 2 {
		return strings.Join(fields[:3], " ")
	}
	return unknown
}
