package actor

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mutantVariable names the mutation in the environment of a mutant's tests.
const mutantVariable = "TETHER_MUTANT"

// mutation is one deliberate defect: a change of the sources, or, where no small
// change would do, of the model.
type mutation struct {
	name string
	file string // below the module's root; empty for a mutation of the model
	old  string // must occur exactly once
	new  string
	by   string    // the tests that must fail, as -run has them; the random ones if empty
	also *mutation // a second change, where either rule alone is enough
}

// TestMutations is a mutation test: it breaks the rules of a lock one by one and
// requires that a test fails each time. A rule whose absence no test notices is
// either untested or not needed.
func TestMutations(t *testing.T) {
	if os.Getenv(mutantVariable) != "" {
		t.Skip("this is the test of a mutant")
	}
	if testing.Short() || raceEnabled {
		t.Skip("every mutant is compiled, without the race detector; CI does it in a step of its own")
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	plain := buildTests(t, root, t.TempDir(), mutation{})
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			binary := plain
			if m.file != "" {
				binary = buildTests(t, root, t.TempDir(), m)
			}
			began := time.Now()
			out, err := runMutant(t, binary, m)
			require.Error(t, err, "no test notices it:\n%s", out)
			require.Contains(t, out, "--- FAIL: Test", "the run failed, but no test did")
			t.Logf("%v: %s", time.Since(began).Round(time.Millisecond), failureOf(out))
		})
	}
}

// buildTests compiles this package's tests with one change of the sources.
func buildTests(t *testing.T, root, dir string, m mutation) string {
	t.Helper()
	binary := filepath.Join(dir, "mutant.test")
	args := []string{"test", "-c", "-o", binary}
	if m.file != "" {
		args = append(args, "-overlay", overlay(t, root, dir, m))
	}
	build := exec.Command("go", append(args, ".")...)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "the mutant does not compile:\n%s", out)
	return binary
}

// overlay writes the changed files, and the file for go build's -overlay that puts
// them in place of the originals.
func overlay(t *testing.T, root, dir string, m mutation) string {
	t.Helper()
	replace := map[string]string{}
	for n, change := 0, &m; change != nil; n, change = n+1, change.also {
		original := filepath.Join(root, change.file)
		source, err := os.ReadFile(original)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(source), change.old), "%s must contain this once:\n%s", change.file, change.old)
		replace[original] = filepath.Join(dir, fmt.Sprintf("changed%d.go", n))
		text := strings.Replace(string(source), change.old, change.new, 1)
		require.NoError(t, os.WriteFile(replace[original], []byte(text), 0o600))
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

func runMutant(t *testing.T, binary string, m mutation) (string, error) {
	t.Helper()
	tests := m.by
	if tests == "" {
		tests = "^(TestRandomSchedules|TestWakesAlone)$"
	}
	run := exec.Command(binary, "-test.run", tests, "-test.failfast", "-test.timeout", "120s")
	run.Env = append(os.Environ(), mutantVariable+"="+m.name, "TETHER_STEPS=3000000", "TETHER_SEED=", "TETHER_LINES=0")
	out, err := run.CombinedOutput()
	return string(out), err
}

// failureOf returns the last failure message in the output of a mutant's tests.
func failureOf(out string) string {
	failure := "no message"
	for line := range strings.Lines(out) {
		if strings.Contains(line, "_test.go:") || strings.Contains(line, "--- FAIL: TestSmallWorlds/") {
			failure = strings.TrimSpace(line)
		}
	}
	return failure
}

// mutant reports whether the model has this mutation in the present run.
func mutant(name string) bool { return os.Getenv(mutantVariable) == name }

// mutantRun reports whether this is the run of a mutant's tests.
func mutantRun() bool { return os.Getenv(mutantVariable) != "" }
