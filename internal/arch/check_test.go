package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// check returns what a file does against the rules, each with its line. The
// file's name is relative to the module, with slashes. Rules about packages
// hold under any name that the import gives them; a variable that hides a
// package's name is taken for the package.
func check(file string, src []byte) ([]string, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	r, ok := roomOf(file)
	if !ok {
		return []string{file + ": the folder has no room in the table of who may import whom"}, nil
	}
	c := &checker{set: set, room: r, isTest: strings.HasSuffix(file, "_test.go"), names: map[string]string{}}
	for _, spec := range tree.Imports {
		c.checkImport(spec)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		c.checkNode(n)
		return true
	})
	return c.found, nil
}

type checker struct {
	set    *token.FileSet
	room   room
	isTest bool
	names  map[string]string // the file's name of a package → its import path
	found  []string
}

func (c *checker) report(at ast.Node, format string, args ...any) {
	c.found = append(c.found, c.set.Position(at.Pos()).String()+": "+fmt.Sprintf(format, args...))
}

func (c *checker) checkImport(spec *ast.ImportSpec) {
	pkg, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		c.report(spec, "bad import %s", spec.Path.Value)
		return
	}
	name := path.Base(pkg)
	if spec.Name != nil {
		name = spec.Name.Name
	}
	c.names[name] = pkg

	// Without a name before the dot there is nothing to recognize.
	if name == "." && (pkg == "sync" || pkg == "time") {
		c.report(spec, "%s imported with a dot", pkg)
	}
	if pkg == module+"/bench" || strings.HasPrefix(pkg, module+"/bench/") {
		c.report(spec, "nothing imports bench")
		return
	}
	if c.isTest {
		return
	}
	if pkg == "sync/atomic" && !c.room.mayLock {
		c.report(spec, "sync/atomic: state belongs to one goroutine")
		return
	}
	if !c.room.mayImport(pkg) {
		c.report(spec, "%s may not import %s", c.room.folder, pkg)
	}
}

func (c *checker) checkNode(n ast.Node) {
	if s, ok := n.(*ast.SelectorExpr); ok {
		c.checkSelector(s)
	}
	if c.room.pure && !c.isTest {
		c.checkConcurrency(n)
	}
}

// unlocked are the names of package sync that guard no state.
var unlocked = []string{"Pool", "WaitGroup"}

// clock are the names of package time that read or wait for the time. The
// types and units that a machine computes with are not among them.
var clock = []string{
	"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Ticker", "Timer", "Until",
}

func (c *checker) checkSelector(s *ast.SelectorExpr) {
	id, ok := s.X.(*ast.Ident)
	if !ok {
		return
	}
	name := s.Sel.Name
	switch c.names[id.Name] {
	case "time":
		if name == "Sleep" {
			c.report(s, "time.Sleep: wait for a condition, or use virtual time")
		} else if c.room.pure && !c.isTest && slices.Contains(clock, name) {
			c.report(s, "time.%s: the time is handed in", name)
		}
	case "sync":
		if !c.room.mayLock && !c.isTest && !slices.Contains(unlocked, name) {
			c.report(s, "sync.%s: state belongs to one goroutine", name)
		}
	}
}

func (c *checker) checkConcurrency(n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n, "a goroutine in a pure file")
	case *ast.SelectStmt:
		c.report(n, "a select in a pure file")
	case *ast.SendStmt:
		c.report(n, "a send in a pure file")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.report(n, "a receive in a pure file")
		}
	case *ast.CallExpr:
		c.checkBuiltin(n)
	}
}

func (c *checker) checkBuiltin(call *ast.CallExpr) {
	f, ok := call.Fun.(*ast.Ident)
	if !ok || len(call.Args) == 0 {
		return
	}
	if f.Name == "close" {
		c.report(call, "a close in a pure file")
	}
	if _, isChan := call.Args[0].(*ast.ChanType); isChan && f.Name == "make" {
		c.report(call, "a channel is made in a pure file")
	}
}
