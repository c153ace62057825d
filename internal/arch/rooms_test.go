package arch

import (
	"path"
	"slices"
	"strings"
)

const module = "github.com/tetherlock/tether"

// room is what the files of one folder, and of the folders below it that have
// no room of their own, may do.
type room struct {
	folder string
	// std are the packages of the standard library that it may import; nil
	// stands for all.
	std []string
	// own are the rooms of this module that it may import.
	own []string
	// foreign are the modules that it may import, with their packages.
	foreign []string
	// mayLock lifts the ban on mutexes and atomics. Everything that is
	// compiled into a user's program keeps its state in one goroutine.
	mayLock bool
	// pure bans goroutines, channel operations, clocks and I/O.
	pure bool
}

const (
	goRedis   = "github.com/redis/go-redis/v9"
	uuid      = "github.com/google/uuid"
	miniredis = "github.com/alicebob/miniredis/v2"
	cobra     = "github.com/spf13/cobra"
)

// rooms is the table of who may import whom. A folder that is not in it fails
// the test.
var rooms = []room{
	{
		folder: "protocol",
		std: []string{
			"bytes", "cmp", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings",
			"unicode", "unicode/utf8",
		},
		pure: true,
	},
	{folder: "wire", own: []string{"protocol"}},
	{folder: "actor", own: []string{"protocol"}, pure: true},
	{folder: actorLoop, own: []string{"protocol", "wire"}},
	{folder: "internal/endpoint", own: []string{"wire", "actor"}, foreign: []string{goRedis, uuid}},
	{folder: "internal/pool", own: []string{"wire"}},
	{folder: "internal/sentinel"},
	{folder: "internal/localqueue", own: []string{"actor"}},
	{folder: "internal/clientloop", own: []string{"wire", "actor", "internal/endpoint", "internal/pool", "internal/sentinel", "internal/localqueue"}},
	{folder: "internal/leasekey", own: []string{"protocol", "actor"}, foreign: []string{goRedis}},
	{folder: "internal/prober", own: []string{"protocol", "wire", "actor", "internal/endpoint"}, foreign: []string{goRedis}},
	{folder: "internal/dispatch"},
	{
		folder: ".",
		own: []string{
			"protocol", "wire", "actor",
			"internal/endpoint", "internal/clientloop", "internal/leasekey", "internal/prober", "internal/dispatch",
		},
		foreign: []string{goRedis},
	},
	{folder: "tethertest", own: []string{"wire"}, foreign: []string{goRedis, miniredis}},
	{folder: "cmd/tether", own: []string{".", "tethertest", "cmd/tether"}, foreign: []string{goRedis, cobra}},
	{folder: "internal/redistest", foreign: []string{goRedis}, mayLock: true},
	{folder: "internal/arch"},
	{folder: "internal/stress"},
	{folder: "interop"},
	{folder: "bench", own: []string{"."}, foreign: []string{"*"}, mayLock: true},
}

// actorLoop stands for the files of actor that run the machine: everything
// else there is the machine.
const actorLoop = "actor/loop*.go"

// roomOf returns the room of a file, whose name is relative to the module. The
// root's room is its own folder only.
func roomOf(file string) (room, bool) {
	if match, _ := path.Match(actorLoop, file); match {
		return roomNamed(actorLoop)
	}
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if r, ok := roomNamed(folder); ok {
			return r, true
		}
	}
	if path.Dir(file) == "." {
		return roomNamed(".")
	}
	return room{}, false
}

func roomNamed(folder string) (room, bool) {
	i := slices.IndexFunc(rooms, func(r room) bool { return r.folder == folder })
	if i < 0 {
		return room{}, false
	}
	return rooms[i], true
}

// mayImport reports whether the room may import a package.
func (r room) mayImport(pkg string) bool {
	if pkg == module || strings.HasPrefix(pkg, module+"/") {
		return r.mayImportOwn(pkg)
	}
	if first, _, _ := strings.Cut(pkg, "/"); !strings.Contains(first, ".") {
		return r.mayImportStd(pkg)
	}
	return slices.ContainsFunc(r.foreign, func(m string) bool {
		return m == "*" || pkg == m || strings.HasPrefix(pkg, m+"/")
	})
}

func (r room) mayImportOwn(pkg string) bool {
	folder := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	return slices.ContainsFunc(r.own, func(o string) bool {
		return o == folder || o == "." && folder == "" || o != "." && strings.HasPrefix(folder, o+"/")
	})
}

// impure are packages, with what lies below them, that reach outside a machine
// or bring it something that its inputs don't: a file, a socket, chance.
var impure = []string{"crypto/rand", "io", "log", "math/rand", "net", "os", "plugin", "runtime", "sync", "syscall"}

func (r room) mayImportStd(pkg string) bool {
	if r.std != nil {
		return slices.Contains(r.std, pkg)
	}
	return !r.pure || !slices.ContainsFunc(impure, func(i string) bool {
		return pkg == i || strings.HasPrefix(pkg, i+"/")
	})
}
