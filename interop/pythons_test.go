package interop

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// python is a version of portalocker, with its features.
type python struct {
	version string
	// withRecords: it answers pings with records, and has readers.
	withRecords bool
	// withElections: its records say who is elected. The same versions notice a
	// loss, and have fencing, self-checks and probes.
	withElections bool
	// needsConnection: it needs a connection of the caller. 4.1 closes a connection
	// of its own between two attempts, and the next ping interrupts the process.
	needsConnection bool
}

const newest, v41 = "4.4.2", "4.1.0"

var pythons = []python{
	{version: newest, withRecords: true, withElections: true},
	{version: "4.2.0", withRecords: true, withElections: true},
	{version: v41, withRecords: true, needsConnection: true},
	{version: "3.2.0"},
}

func (p python) String() string { return "portalocker " + p.version }

// interpreter is the path of the version's Python. Without it the test is skipped.
// With TETHER_STRICT=1 in the environment it fails.
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

// forVersions runs a test with every selected version of portalocker.
func forVersions(t *testing.T, selected func(python) bool, test func(t *testing.T, p python)) {
	t.Parallel()
	for _, p := range pythons {
		if !selected(p) {
			continue
		}
		t.Run(p.String(), func(t *testing.T) {
			p.interpreter(t)
			t.Parallel()
			test(t, p)
		})
	}
}

func allVersions(python) bool      { return true }
func withRecords(p python) bool    { return p.withRecords }
func withElections(p python) bool  { return p.withElections }
func withoutRecords(p python) bool { return !p.withRecords }
