package arch

import (
	"path"
	"slices"
	"strings"
)

const module = "github.com/tetherlock/tether"

// layer says what the files of one folder may do. It covers subfolders that
// have no layer of their own.
type layer struct {
	folder string
	// std are the packages of the standard library that it may import. nil
	// allows all, except impurePackages in a pure layer.
	std []string
	// inModule are the folders of this module that it may import.
	inModule []string
	// thirdParty are the other modules that it may import, with all their
	// packages. "*" allows every module.
	thirdParty []string
	// mayUseMutexes allows mutexes and atomics. Code that is compiled into a
	// user's program may not have them: its state belongs to one goroutine.
	mayUseMutexes bool
	// pure forbids goroutines, channel operations, clocks and I/O.
	pure bool
}

const (
	goRedis   = "github.com/redis/go-redis/v9"
	uuid      = "github.com/google/uuid"
	miniredis = "github.com/alicebob/miniredis/v2"
	cobra     = "github.com/spf13/cobra"
)

// layers is the table of who may import whom. A folder that is not in it, or
// below an entry, fails the test. Tests may import any package but bench.
var layers = []layer{
	{
		folder: "protocol",
		std: []string{
			"bytes", "cmp", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices", "sort", "strconv", "strings",
			"unicode", "unicode/utf8",
		},
		pure: true,
	},
	{folder: "wire", inModule: []string{"protocol"}},
	{folder: "actor", inModule: []string{"protocol"}, pure: true},
	{folder: actorLoop, inModule: []string{"protocol", "wire"}},
	{folder: "internal/endpoint", inModule: []string{"wire", "actor"}, thirdParty: []string{goRedis, uuid}},
	{folder: "internal/pool", inModule: []string{"wire"}},
	{folder: "internal/sentinel"},
	{folder: "internal/localqueue", inModule: []string{"actor"}},
	{folder: "internal/clientloop", inModule: []string{"wire", "actor", "internal/endpoint", "internal/pool", "internal/sentinel", "internal/localqueue"}},
	{folder: "internal/leasekey", inModule: []string{"protocol", "actor"}, thirdParty: []string{goRedis}},
	{folder: "internal/prober", inModule: []string{"protocol", "wire", "actor", "internal/endpoint"}, thirdParty: []string{goRedis}},
	{folder: "internal/dispatch"},
	{
		folder: ".",
		inModule: []string{
			"protocol", "wire", "actor",
			"internal/endpoint", "internal/clientloop", "internal/leasekey", "internal/prober", "internal/dispatch",
		},
		thirdParty: []string{goRedis},
	},
	{folder: "tethertest", inModule: []string{"wire"}, thirdParty: []string{goRedis, miniredis}},
	{folder: "cmd/tether", inModule: []string{".", "tethertest", "cmd/tether"}, thirdParty: []string{goRedis, cobra}},
	{folder: "internal/redistest", thirdParty: []string{goRedis}, mayUseMutexes: true},
	{folder: "internal/arch"},
	{folder: "internal/stress"},
	{folder: "interop"},
	{folder: "bench", inModule: []string{"."}, thirdParty: []string{"*"}, mayUseMutexes: true},
}

// actorLoop matches the files of actor that run the machine. All other files
// there are the machine, which is pure.
const actorLoop = "actor/loop*.go"

// layerOf returns the layer of a file, whose name is relative to the module. The
// layer of the root does not cover subfolders: every folder would be allowed.
func layerOf(file string) (layer, bool) {
	if match, _ := path.Match(actorLoop, file); match {
		return layerIn(actorLoop)
	}
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if l, ok := layerIn(folder); ok {
			return l, true
		}
	}
	if path.Dir(file) == "." {
		return layerIn(".")
	}
	return layer{}, false
}

func layerIn(folder string) (layer, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return l.folder == folder })
	if i < 0 {
		return layer{}, false
	}
	return layers[i], true
}

// mayImport reports whether the layer may import a package.
func (l layer) mayImport(pkg string) bool {
	if pkg == module || strings.HasPrefix(pkg, module+"/") {
		return l.mayImportInModule(pkg)
	}
	if first, _, _ := strings.Cut(pkg, "/"); !strings.Contains(first, ".") {
		return l.mayImportStd(pkg)
	}
	return slices.ContainsFunc(l.thirdParty, func(m string) bool {
		return m == "*" || pkg == m || strings.HasPrefix(pkg, m+"/")
	})
}

func (l layer) mayImportInModule(pkg string) bool {
	folder := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	return slices.ContainsFunc(l.inModule, func(o string) bool {
		return o == folder || o == "." && folder == "" || o != "." && strings.HasPrefix(folder, o+"/")
	})
}

// impurePackages may not be imported by a pure layer, nor may their subpackages.
// They do I/O, read the environment or bring randomness, so that the same inputs
// would not always give the same effects.
var impurePackages = []string{"crypto/rand", "io", "log", "math/rand", "net", "os", "plugin", "runtime", "sync", "syscall"}

func (l layer) mayImportStd(pkg string) bool {
	if l.std != nil {
		return slices.Contains(l.std, pkg)
	}
	return !l.pure || !slices.ContainsFunc(impurePackages, func(i string) bool {
		return pkg == i || strings.HasPrefix(pkg, i+"/")
	})
}
