package arch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRules has a violation of every rule, and beside it what is allowed.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, file, src string
		want            []string // nil: no violation
	}{
		// Who may import whom.
		{"protocol imports data", "protocol/a.go", `import ("cmp"; "slices"; "strings")`, nil},
		{"protocol imports I/O", "protocol/a.go", `import ("net"; "os")`, []string{
			"protocol may not import net", "protocol may not import os",
		}},
		{"protocol imports time", "protocol/a.go", `import "time"`, []string{"protocol may not import time"}},
		{"protocol imports JSON", "protocol/a.go", `import "encoding/json"`, []string{
			"protocol may not import encoding/json",
		}},
		{"protocol imports wire", "protocol/a.go", importOf("wire"), []string{
			"protocol may not import github.com/tetherlock/tether/wire",
		}},
		{"wire imports protocol", "wire/a.go", `import ("net"; "` + module + `/protocol")`, nil},
		{"wire imports actor", "wire/a.go", importOf("actor"), []string{
			"wire may not import github.com/tetherlock/tether/actor",
		}},
		{"wire imports go-redis", "wire/a.go", `import "github.com/redis/go-redis/v9"`, []string{
			"wire may not import github.com/redis/go-redis/v9",
		}},
		{"a folder below wire", "wire/deep/a.go", importOf("actor"), []string{
			"wire may not import github.com/tetherlock/tether/actor",
		}},
		{"the machine imports protocol", "actor/machine.go", importOf("protocol"), nil},
		{"the machine imports wire", "actor/machine.go", importOf("wire"), []string{
			"actor may not import github.com/tetherlock/tether/wire",
		}},
		{"a folder whose name begins like an allowed one", "actor/machine.go", importOf("protocolx"), []string{
			"actor may not import github.com/tetherlock/tether/protocolx",
		}},
		{"the machine imports randomness", "actor/machine.go", `import "math/rand/v2"`, []string{
			"actor may not import math/rand/v2",
		}},
		{"the loop imports wire", "actor/loop_route.go", importOf("wire"), nil},
		{"the loop imports the root", "actor/loop.go", importOf(""), []string{
			"actor/loop*.go may not import github.com/tetherlock/tether",
		}},
		{"the root imports all below", "lock.go", `import ("` + module + `/actor"; "` + module + `/wire"; "github.com/redis/go-redis/v9/auth"; "` + module + `/internal/clientloop")`, nil},
		{"the root imports no part of the client loop", "lock.go", `import "` + module + `/internal/pool"`, []string{". may not import " + module + "/internal/pool"}},
		{"the root imports tethertest", "lock.go", importOf("tethertest"), []string{
			". may not import github.com/tetherlock/tether/tethertest",
		}},
		{"the root imports another module", "lock.go", `import "example.com/x"`, []string{
			". may not import example.com/x",
		}},
		{"a module whose name begins like an allowed one", "lock.go", `import "github.com/google/uuidx"`, []string{
			". may not import github.com/google/uuidx",
		}},
		{"the root's tests import tethertest", "lock_test.go", importOf("tethertest"), nil},
		{"tethertest imports the root", "tethertest/a.go", importOf(""), []string{
			"tethertest may not import github.com/tetherlock/tether",
		}},
		{"tethertest imports actor", "tethertest/a.go", importOf("actor"), []string{
			"tethertest may not import github.com/tetherlock/tether/actor",
		}},
		{"the command imports the root", "cmd/tether/a.go", `import ("` + module + `"; "` + module + `/tethertest")`, nil},
		{"the command imports actor", "cmd/tether/a.go", importOf("actor"), []string{
			"cmd/tether may not import github.com/tetherlock/tether/actor",
		}},
		{"the root imports test support", "lock.go", importOf("internal/redistest"), []string{
			". may not import github.com/tetherlock/tether/internal/redistest",
		}},
		{"bench imports the root and its peers", "bench/a.go", `import ("` + module + `"; "example.com/peer")`, nil},
		{"bench imports wire", "bench/a.go", importOf("wire"), []string{
			"bench may not import github.com/tetherlock/tether/wire",
		}},
		{"the command imports bench", "cmd/tether/a.go", importOf("bench"), []string{"nothing imports bench"}},
		{"a test imports bench", "lock_test.go", importOf("bench/sub"), []string{"nothing imports bench"}},
		{"an unknown folder", "extra/a.go", ``, []string{
			"the folder is in no layer",
		}},

		// Where state may live.
		{"a mutex", "lock.go", `import "sync"; var m sync.Mutex`, []string{"sync.Mutex: state belongs to one goroutine"}},
		{"a mutex under another name", "wire/a.go", `import s "sync"; type t struct { *s.RWMutex }`, []string{
			"sync.RWMutex: state belongs to one goroutine",
		}},
		{"other synchronization of package sync", "lock.go", `import "sync"; var a sync.Once; var b sync.Map; var c = sync.NewCond; var d = sync.OnceFunc`, []string{
			"sync.Once: state belongs to one goroutine",
			"sync.Map: state belongs to one goroutine",
			"sync.NewCond: state belongs to one goroutine",
			"sync.OnceFunc: state belongs to one goroutine",
		}},
		{"a dot import of sync", "tethertest/a.go", `import . "sync"; var m Mutex`, []string{"sync imported with a dot"}},
		{"atomics", "cmd/tether/a.go", `import a "sync/atomic"; var n a.Int64`, []string{
			"sync/atomic: state belongs to one goroutine",
		}},
		{"a wait group", "lock.go", `import "sync"; var w sync.WaitGroup`, nil},
		{"a mutex in a test", "lock_test.go", `import ("sync"; "sync/atomic"); var m sync.Mutex; var n atomic.Int64`, nil},
		{"a mutex in test support", "internal/redistest/a.go", `import "sync"; var m sync.Mutex`, nil},

		// Nothing sleeps.
		{"a sleep", "lock.go", `import "time"; func f() { time.Sleep(1) }`, []string{
			"time.Sleep: wait for a condition, or use virtual time",
		}},
		{"a sleep under another name, not called", "wire/a.go", `import t "time"; var f = t.Sleep`, []string{
			"time.Sleep: wait for a condition, or use virtual time",
		}},
		{"a dot import of time", "lock_test.go", `import . "time"; var f = Sleep`, []string{"time imported with a dot"}},
		{"a sleep in a test", "actor/a_test.go", `import "time"; func f() { time.Sleep(1) }`, []string{
			"time.Sleep: wait for a condition, or use virtual time",
		}},
		{"a sleep in test support", "internal/redistest/a.go", `import "time"; func f() { time.Sleep(1) }`, []string{
			"time.Sleep: wait for a condition, or use virtual time",
		}},
		{"another package's Sleep", "lock.go", `import "context"; var f = context.Sleep`, nil},

		// Pure files.
		{"the machine computes with times", "actor/machine.go", `import "time"; func f(t time.Time) time.Time { return t.Add(time.Second) }`, nil},
		{"the machine reads the clock", "actor/machine.go", `import clk "time"; var a = clk.Now(); var b = clk.Until; var c clk.Timer`, []string{
			"time.Now: the time is handed in",
			"time.Until: the time is handed in",
			"time.Timer: the time is handed in",
		}},
		{"the loop reads the clock", "actor/loop.go", `import "time"; var a = time.Now()`, nil},
		{"the machine's tests need not be pure", "actor/machine_test.go", `import "time"; func f(c chan int) { go f(c); <-c; _ = time.Now() }`, nil},
		{"the machine starts a goroutine", "actor/machine.go", `func f() { go f() }`, []string{
			"a goroutine in a pure file",
		}},
		{"the machine uses channels", "actor/effect.go", `func f(c chan int) { c <- <-c; close(c); c = make(chan int); select {} }`, []string{
			"a send in a pure file",
			"a receive in a pure file",
			"a close in a pure file",
			"a channel is made in a pure file",
			"a select in a pure file",
		}},
		{"protocol starts a goroutine", "protocol/a.go", `func f() { go f() }`, []string{
			"a goroutine in a pure file",
		}},
		{"the loop uses channels", "actor/loop.go", `func f(c chan int) { go f(c); select { case <-c: } }`, nil},
		{"a method named close", "actor/machine.go", `func f(m interface{ close(int) }) { m.close(1) }`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			violations, err := check(c.file, []byte("package a; "+c.src))
			require.NoError(t, err)
			var messages []string
			for _, f := range violations {
				at, what, _ := strings.Cut(f, ": ")
				require.True(t, strings.HasPrefix(at, c.file), f)
				messages = append(messages, what)
			}
			require.Equal(t, c.want, messages)
		})
	}
}

func TestAViolationHasItsPosition(t *testing.T) {
	violations, err := check("wire/a.go", []byte("package wire\n\nimport \"sync\"\n\nvar m sync.Mutex\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"wire/a.go:5:7: sync.Mutex: state belongs to one goroutine"}, violations)
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	_, err := check("lock.go", []byte("package"))
	require.Error(t, err)
}

// importOf is an import of a folder of this module.
func importOf(folder string) string {
	if folder != "" {
		folder = "/" + folder
	}
	return `import "` + module + folder + `"`
}
