package interop

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/tetherlock/tether/internal/redistest"
)

// shared is the server of all tests that need none of their own.
var shared *redistest.Server

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		serve(os.Stdin, os.Stdout)
		return
	}
	// The tests wait most of the time: for answers, for time-outs, for Python.
	_ = flag.Set("test.parallel", "4") // the command line has the last word
	s, err := redistest.Open()
	if err != nil && !errors.Is(err, exec.ErrNotFound) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = s
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if s != nil {
			s.Stop()
		}
		os.Exit(code)
	}))
}
