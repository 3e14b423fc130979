package wire

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryAdditionIsListed compares all that a request can hold with what it
// could hold in version 1, which does not change any more, and the list of what
// came since. Whoever adds a field or an operation adds it to that list, under a
// version that no released guest speaks.
func TestEveryAdditionIsListed(t *testing.T) {
	old, err := os.ReadFile("testdata/version-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(old)), "\n")
	for _, a := range additions() {
		if a.version < 2 || a.version > MaxVersion {
			t.Errorf("%s came with version %d", a.name, a.version)
		}
		want = append(want, a.name)
	}
	got := append(fieldsOf("", reflect.TypeFor[Request]()), operations(t)...)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(slices.Compact(want), slices.Compact(got)); diff != "" {
		t.Errorf("requests can hold other things than version 1 and its additions say:\n%s", diff)
	}
}

// fieldsOf names the fields of a request as its JSON does.
func fieldsOf(prefix string, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for field := range t.Fields() {
		if field.Anonymous { // JSON has its fields, not its name
			names = append(names, fieldsOf(prefix, field.Type)...)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			name = field.Name
		}
		names = append(names, prefix+name)
		names = append(names, fieldsOf(prefix+name+".", field.Type)...)
	}
	return names
}

// operations are the constants of type Op in this package's sources.
func operations(t *testing.T) []string {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Op" {
				op, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, "operation "+op)
			}
			return true
		})
	}
	return found
}

// TestAdditionsAreRefusedByName asks an older guest for everything that is new.
func TestAdditionsAreRefusedByName(t *testing.T) {
	requests := map[string]*Request{
		"operation grant.open": {Op: OpGrantOpen},
		"operation grant.end":  {Op: OpGrantEnd},
		"operation taken":      {Op: OpAckLast},
		"grant":                {Op: OpPing, Grant: &Grant{}},
		"grant.id":             {Op: OpPing, Grant: &Grant{ID: "g"}},
		"grant.graceMs":        {Op: OpPing, Grant: &Grant{GraceMs: 1}},
		"exec.grant":           {Op: OpExec, Exec: &Exec{Grant: "g"}},
		"exec.while":           {Op: OpExec, Exec: &Exec{While: "p"}},
		"port.who":             {Op: OpPortListen, Port: &Port{WithGrant: true}},
	}
	for _, a := range additions() {
		request := requests[a.name]
		if request == nil {
			t.Errorf("no request here uses %s", a.name)
			continue
		}
		err := Understood(a.version-1, request)
		refusal, ok := errors.AsType[*Error](err)
		if !a.used(request) || !ok || refusal.Code != CodeUnsupported || !strings.HasPrefix(refusal.Message, "\"") {
			t.Errorf("%s: %v", a.name, err)
		}
		if err := Understood(a.version, request); err != nil {
			t.Errorf("%s, to a guest that knows it: %v", a.name, err)
		}
	}
	plain := []*Request{
		{Op: OpPing}, {Op: OpExec, Exec: &Exec{ID: "x", Argv: []Text{"true"}}},
		{Op: OpPortListen, Port: &Port{ID: "x", Port: 80}}, {Op: OpFileStat, File: &File{}},
	}
	for _, request := range plain {
		if err := Understood(MinVersion, request); err != nil {
			t.Errorf("%s: %v", request.Op, err)
		}
	}
}
