package protocol_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tetherlock/tether/protocol"
)

// row is one line of a table in testdata.
type row struct {
	at     string // file:line
	header string // the nearest header above it, such as "fresh b"
	others []protocol.Record
	want   string
}

// evaluate maps the headers of the tables to the functions that they are about.
var evaluate = map[string]func(others []protocol.Record) string{
	"fresh b":    func(rs []protocol.Record) string { return protocol.Elect("b", false, rs).String() },
	"elected b":  func(rs []protocol.Record) string { return protocol.Elect("b", true, rs).String() },
	"promoted b": func(rs []protocol.Record) string { return protocol.Confirm("b", rs).String() },
	"joining b":  func(rs []protocol.Record) string { return protocol.Join("b", rs).String() },
	"writer":     func(rs []protocol.Record) string { return show(protocol.Blocking(protocol.Exclusive, rs)) },
	"reader":     func(rs []protocol.Record) string { return show(protocol.Blocking(protocol.Shared, rs)) },
}

func TestTables(t *testing.T) {
	for _, r := range readTables(t) {
		require.Equal(t, r.want, evaluate[r.header](r.others), "%s: %s: %s", r.at, r.header, show(r.others))
	}
}

// TestTablesAreComplete checks that the tables specify the result for every kind
// of record alone.
func TestTablesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range readTables(t) {
		seen[r.header+": "+show(r.others)] = true
	}
	ids := map[bool][]string{true: {"a", "c"}, false: {"a"}}
	for header := range evaluate {
		_, self, _ := strings.Cut(header, " ")
		kinds := []string{"nobody", "legacy-0"}
		for _, id := range ids[self != ""] {
			for _, mode := range []string{" exclusive", " pending", " shared"} {
				for _, election := range []string{"", " elected", " 4.1"} {
					kinds = append(kinds, id+mode+election)
				}
			}
			kinds = append(kinds, id+" shared joining")
		}
		for _, kind := range kinds {
			require.True(t, seen[header+": "+kind], "no row under %q for %q alone", header, kind)
		}
	}
}

func readTables(t *testing.T) []row {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.Len(t, files, 4)
	var rows []row
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		rows = append(rows, parseTable(t, filepath.Base(file), string(text))...)
	}
	return rows
}

func parseTable(t *testing.T, name, text string) []row {
	t.Helper()
	var rows []row
	header := ""
	n := 0
	for line := range strings.Lines(text) {
		n++
		at := fmt.Sprintf("%s:%d", name, n)
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		left, right, isRow := strings.Cut(line, "->")
		if !isRow {
			require.Contains(t, evaluate, line, at)
			header = line
			continue
		}
		require.NotEmpty(t, header, at)
		others, err := parseRecords(left)
		require.NoError(t, err, at)
		rows = append(rows, row{at: at, header: header, others: others, want: strings.TrimSpace(right)})
	}
	return rows
}

// parseRecords parses "nobody", or records separated by commas.
func parseRecords(text string) ([]protocol.Record, error) {
	if strings.TrimSpace(text) == "nobody" {
		return nil, nil
	}
	var records []protocol.Record
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseRecord(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		records = append(records, r)
	}
	return records, nil
}

// parseRecord parses an id, a mode and attributes, or only the id of a legacy
// record.
func parseRecord(words []string) (protocol.Record, error) {
	if len(words) == 1 && strings.HasPrefix(words[0], "legacy-") {
		return protocol.Record{ID: words[0], Mode: protocol.Exclusive, Legacy: true}, nil
	}
	if len(words) < 2 {
		return protocol.Record{}, fmt.Errorf("want an id and a mode")
	}
	mode, ok := protocol.ParseMode(words[1])
	if !ok {
		return protocol.Record{}, fmt.Errorf("unknown mode %q", words[1])
	}
	r := protocol.Record{ID: words[0], Mode: mode, Election: protocol.NotElected}
	for _, word := range words[2:] {
		switch word {
		case "elected":
			r.Election = protocol.Elected
		case "4.1":
			r.Election = protocol.Unstated
		case "joining":
			r.Joining = true
		default:
			return protocol.Record{}, fmt.Errorf("unknown attribute %q", word)
		}
	}
	return r, nil
}

// show is the inverse of parseRecords.
func show(records []protocol.Record) string {
	if len(records) == 0 {
		return "nobody"
	}
	var parts []string
	for _, r := range records {
		words := []string{r.ID}
		if !r.Legacy {
			words = append(words, r.Mode.String())
		}
		switch {
		case r.Legacy:
		case r.Election == protocol.Elected:
			words = append(words, "elected")
		case r.Election == protocol.Unstated:
			words = append(words, "4.1")
		}
		if r.Joining {
			words = append(words, "joining")
		}
		parts = append(parts, strings.Join(words, " "))
	}
	return strings.Join(parts, ", ")
}

func TestTableLanguage(t *testing.T) {
	for _, text := range []string{"nobody", "a pending", "a shared 4.1, c exclusive elected, legacy-0", "a shared joining"} {
		records, err := parseRecords(text)
		require.NoError(t, err)
		require.Equal(t, text, show(records))
	}
	for _, text := range []string{"", "a", "a resting", "a pending soon", "a pending,"} {
		_, err := parseRecords(text)
		require.Error(t, err, text)
	}
}

func TestVerdictString(t *testing.T) {
	var got []string
	for v := range protocol.Granted + 2 {
		got = append(got, v.String())
	}
	require.Equal(t, []string{"none", "demote", "held", "defer", "wait", "again", "promote", "granted", "none"}, got)
}

func TestMode(t *testing.T) {
	for _, m := range []protocol.Mode{protocol.Exclusive, protocol.Pending, protocol.Shared} {
		got, ok := protocol.ParseMode(m.String())
		require.True(t, ok)
		require.Equal(t, m, got)
	}
	for _, s := range []string{"", "unknown", "Exclusive", "exclusive "} {
		_, ok := protocol.ParseMode(s)
		require.False(t, ok, "%q", s)
	}
	require.Equal(t, "unknown", protocol.Mode(0).String())
}
