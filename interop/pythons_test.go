package interop

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// python is a version of portalocker, with what it can do.
type python struct {
	version string
	// records says that it answers pings with records and knows readers.
	records bool
	// tells says that it advertises elections, notices a loss, and has
	// fencing, self-checks and probes.
	tells bool
	// lent says that it needs a connection of the caller. With one of its own
	// 4.1 closes it between two attempts, and the next ping interrupts the
	// whole process.
	lent bool
}

const newest, v41 = "4.4.2", "4.1.0"

var pythons = []python{
	{version: newest, records: true, tells: true},
	{version: "4.2.0", records: true, tells: true},
	{version: v41, records: true, lent: true},
	{version: "3.2.0"},
}

func (p python) String() string { return "portalocker " + p.version }

// interpreter is the version's program. Without it the test is skipped, or
// fails in strict mode.
func (p python) interpreter(t testing.TB) string {
	t.Helper()
	missing := "TETHER_PYTHONS names no folder with virtual environments"
	if folder := os.Getenv("TETHER_PYTHONS"); folder != "" {
		path := filepath.Join(folder, p.version, "bin", "python")
		if runtime.GOOS == "windows" {
			path = filepath.Join(folder, p.version, "Scripts", "python.exe")
		}
		if _, err := os.Stat(path); err == nil {
			return path
		}
		missing = path + " is missing"
	}
	if os.Getenv("TETHER_STRICT") == "1" {
		t.Fatalf("%v: %s", p, missing)
	}
	t.Skipf("%v: %s", p, missing)
	return ""
}

func TestEveryVersionIsPinned(t *testing.T) {
	pins, err := filepath.Glob("testdata/pythons/*.txt")
	require.NoError(t, err)
	var versions, pinned []string
	for _, p := range pythons {
		versions = append(versions, p.version)
	}
	for _, pin := range pins {
		version := strings.TrimSuffix(filepath.Base(pin), ".txt")
		pinned = append(pinned, version)
		text, err := os.ReadFile(pin)
		require.NoError(t, err)
		require.Contains(t, string(text), "portalocker=="+version+"\n")
		for line := range strings.Lines(string(text)) {
			require.Contains(t, line, "==")
		}
	}
	require.ElementsMatch(t, versions, pinned)
}

// onPythons runs a test with every version of portalocker that is able to.
func onPythons(t *testing.T, able func(python) bool, test func(t *testing.T, p python)) {
	t.Parallel()
	for _, p := range pythons {
		if !able(p) {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			p.interpreter(t)
			t.Parallel()
			test(t, p)
		})
	}
}

func everyone(python) bool  { return true }
func records(p python) bool { return p.records }
func tells(p python) bool   { return p.tells }
func oldest(p python) bool  { return !p.records }
