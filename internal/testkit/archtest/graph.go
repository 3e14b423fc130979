package archtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Module is the path that the packages of this tree begin with.
const Module = "github.com/atoll-run/atoll"

// A Package is what the rules know of one package of this tree. Paths of
// packages of this tree are without the module's: "internal/policy".
type Package struct {
	Path    string
	Name    string
	Doc     string   // first sentence of the package comment
	Imports []string // what its files other than tests import, this tree's and others'
	Deps    []string // what it links, directly or not
	Files   []File
}

// A File is what the rules know of one file that is not a test.
type File struct {
	Name      string
	Lines     int // all of them
	Code      int // without empty lines and comments
	Generated bool
	Inits     int      // init functions
	Uses      []string // names used of other packages: "time.Now"
}

// Load describes the packages below the module's root directory. Whether they
// compile is not its question.
func Load(ctx context.Context, root string) ([]Package, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-json=ImportPath,Name,Dir,Doc,GoFiles,Imports,Deps", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return decode(json.NewDecoder(bytes.NewReader(out)))
}

func decode(listed *json.Decoder) ([]Package, error) {
	var packages []Package
	for {
		var p struct {
			ImportPath, Name, Dir, Doc string
			GoFiles, Imports, Deps     []string
		}
		if err := listed.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		files, err := readFiles(p.Dir, p.GoFiles)
		if err != nil {
			return nil, err
		}
		packages = append(packages, Package{
			Path: local(p.ImportPath), Name: p.Name, Doc: p.Doc,
			Imports: locals(p.Imports), Deps: locals(p.Deps), Files: files,
		})
	}
}

// local shortens the path of a package of this tree; others stay as they are.
func local(importPath string) string {
	if importPath == Module {
		return "."
	}
	return strings.TrimPrefix(importPath, Module+"/")
}

func locals(importPaths []string) []string {
	short := make([]string, 0, len(importPaths))
	for _, p := range importPaths {
		short = append(short, local(p))
	}
	return short
}

func readFiles(dir string, names []string) ([]File, error) {
	files := make([]File, 0, len(names))
	for _, name := range names {
		src, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		file, err := parse(name, src)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

func parse(name string, src []byte) (File, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	file := File{Name: name, Lines: bytes.Count(src, []byte("\n")), Code: codeLines(src), Generated: ast.IsGenerated(tree), Uses: uses(tree)}
	for _, decl := range tree.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			file.Inits++
		}
	}
	return file, nil
}

// codeLines counts the lines that are neither empty nor only a comment.
func codeLines(src []byte) (n int) {
	for line := range bytes.Lines(src) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			n++
		}
	}
	return n
}

// uses lists the names of other packages that a file uses, with the full paths
// of their packages. A local variable named as an import would be counted too:
// an error on the strict side.
func uses(tree *ast.File) []string {
	imports := map[string]string{}
	for _, spec := range tree.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = importPath
	}
	var found []string
	ast.Inspect(tree, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := selector.X.(*ast.Ident); ok && imports[x.Name] != "" {
				found = append(found, imports[x.Name]+"."+selector.Sel.Name)
			}
		}
		return true
	})
	slices.SortFunc(found, cmp.Compare[string])
	return slices.Compact(found)
}
