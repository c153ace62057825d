// Package arch checks the rules of the module's architecture on every Go file:
//
//   - imports follow the table in layers_test.go;
//   - a mutex or an atomic is only in tests and in layers that say so;
//   - nothing calls time.Sleep, tests included;
//   - pure layers have no goroutine, channel operation, clock or I/O.
//
// rules_test.go has an example of every violation.
package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the module's folder, seen from this one.
const root = "../.."

func TestArchitecture(t *testing.T) {
	files := goFiles(t)
	// With a wrong root the walk finds no files, and no violations either.
	require.Contains(t, files, "internal/arch/arch_test.go", "the walk must start at the module's root")
	for _, file := range files {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		violations, err := check(file, src)
		require.NoError(t, err)
		for _, f := range violations {
			t.Error(f)
		}
	}
}

// goFiles returns the Go files of the module, with paths relative to the root.
// It ignores build constraints, so that files for other systems are checked too.
func goFiles(t *testing.T) []string {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		hidden := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
		if d.IsDir() {
			if path != root && (hidden || name == "testdata" || name == "vendor") {
				return fs.SkipDir
			}
			return nil
		}
		if hidden || filepath.Ext(name) != ".go" {
			return nil
		}
		relative, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	require.NoError(t, err)
	return files
}
