// Package arch holds the module to its architecture: who may import whom,
// where state may live, and that nothing sleeps.
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
	require.Contains(t, files, "internal/arch/arch_test.go", "the walk must start at the module's root")
	for _, file := range files {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		require.NoError(t, err)
		found, err := check(file, src)
		require.NoError(t, err)
		for _, f := range found {
			t.Error(f)
		}
	}
}

// goFiles returns the Go files that the go command would see, whatever their
// build constraints, relative to the root.
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
