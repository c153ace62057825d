package tether_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Go code of the README and of the package's documentation is taken from
// examples, which are compiled and run.
func TestDocumentedCodeIsCompiled(t *testing.T) {
	var examples strings.Builder
	files, err := filepath.Glob("example*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		examples.WriteString(words(readFile(t, file)) + "\n")
	}
	for file, code := range map[string]*regexp.Regexp{
		"README.md": regexp.MustCompile("(?ms)^```go\n(.*?)^```$"),
		"doc.go":    regexp.MustCompile(`(?m)((?:^//\t.*\n)+)`),
	} {
		snippets := code.FindAllStringSubmatch(readFile(t, file), -1)
		require.NotEmpty(t, snippets, file)
		for _, snippet := range snippets {
			text := regexp.MustCompile(`(?m)^//\t`).ReplaceAllString(snippet[1], "")
			require.Contains(t, examples.String(), words(text), "the code of %s is in no example", file)
		}
	}
}

// Every test that the documentation names exists.
func TestDocumentedTestsExist(t *testing.T) {
	exists := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`)
	require.NoError(t, filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, "_test.go") {
			for _, match := range declared.FindAllStringSubmatch(readFile(t, file), -1) {
				exists[match[1]] = true
			}
		}
		return err
	}))
	for _, file := range []string{"README.md", "CONTRIBUTING.md", "docs/interop.md"} {
		named := regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`).FindAllString(readFile(t, file), -1)
		require.NotEmpty(t, named, file)
		missing := slices.DeleteFunc(named, func(name string) bool { return exists[name] })
		require.Empty(t, missing, "named in %s", file)
	}
}

// Every promise of the README names a test.
func TestEveryPromiseNamesATest(t *testing.T) {
	_, section, found := strings.Cut(readFile(t, "README.md"), "## What it promises\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(section, -1)
	require.Greater(t, len(rows), 2)
	for _, row := range rows[2:] {
		require.Regexp(t, "`Test[A-Z]\\w*`", row)
	}
}

// words is a text with single spaces, for comparing.
func words(s string) string { return strings.Join(strings.Fields(s), " ") }

func readFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// docs/architecture.md sends its readers to files, and names functions in them. Both
// exist.
func TestDocumentedFilesExist(t *testing.T) {
	doc := readFile(t, "docs/architecture.md")
	files := regexp.MustCompile(`[a-z_]+(?:/[a-z_]+)*\.go\b`).FindAllString(doc, -1)
	require.NotEmpty(t, files)
	var sources strings.Builder
	for _, file := range files {
		sources.WriteString(readFile(t, file))
	}
	names := regexp.MustCompile("`([a-z]\\w+)`").FindAllStringSubmatch(doc, -1)
	require.NotEmpty(t, names)
	for _, name := range names {
		if _, err := os.Stat(name[1]); err != nil { // a folder
			declared := regexp.MustCompile(`func (\([^)]*\) )?` + name[1] + `\(`).MatchString(sources.String())
			require.True(t, declared, "%s is named in docs/architecture.md", name[1])
		}
	}
}
