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

// check returns the violations of a file, each with its position. The file's
// name is relative to the module, with slashes.
//
// A package is recognized under any name that its import gives it. A variable
// that shadows a package name is mistaken for the package: check sees syntax,
// not types.
func check(file string, src []byte) ([]string, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	l, ok := layerOf(file)
	if !ok {
		return []string{file + ": the folder is in no layer"}, nil
	}
	c := &checker{fset: fset, layer: l, isTest: strings.HasSuffix(file, "_test.go"), names: map[string]string{}}
	for _, spec := range syntax.Imports {
		c.checkImport(spec)
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		c.checkNode(n)
		return true
	})
	return c.violations, nil
}

type checker struct {
	fset       *token.FileSet
	layer      layer
	isTest     bool
	names      map[string]string // package name in this file → import path
	violations []string
}

func (c *checker) report(at ast.Node, format string, args ...any) {
	c.violations = append(c.violations, c.fset.Position(at.Pos()).String()+": "+fmt.Sprintf(format, args...))
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

	// After a dot import, Mutex or Sleep stands without its package name, and
	// checkSelector would not see it.
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
	if pkg == "sync/atomic" && !c.layer.mayUseMutexes {
		c.report(spec, "sync/atomic: state belongs to one goroutine")
		return
	}
	if !c.layer.mayImport(pkg) {
		c.report(spec, "%s may not import %s", c.layer.folder, pkg)
	}
}

func (c *checker) checkNode(n ast.Node) {
	if s, ok := n.(*ast.SelectorExpr); ok {
		c.checkSelector(s)
	}
	if c.layer.pure && !c.isTest {
		c.checkConcurrency(n)
	}
}

// stateless are the names of package sync that guard no state, and are allowed
// everywhere.
var stateless = []string{"Pool", "WaitGroup"}

// clockNames are the names of package time that read the clock or wait for it.
// Types and units are allowed in pure files: they only compute.
var clockNames = []string{
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
		} else if c.layer.pure && !c.isTest && slices.Contains(clockNames, name) {
			c.report(s, "time.%s: the time is handed in", name)
		}
	case "sync":
		if !c.layer.mayUseMutexes && !c.isTest && !slices.Contains(stateless, name) {
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
