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

// shared is the server of all tests that do not need their own.
var shared *redistest.Server

func TestMain(m *testing.M) {
	if os.Getenv(tetherProcessEnv) != "" {
		serveRequests(os.Stdin, os.Stdout)
		return
	}
	// Most of the time the tests wait, so that four at a time are not too many for
	// two processors. A flag on the command line overrides this.
	_ = flag.Set("test.parallel", "4")
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
