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
// came since. A new field or operation is added to that list, under a feature
// that no released guest announces.
func TestEveryAdditionIsListed(t *testing.T) {
	old, err := os.ReadFile("testdata/version-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(old)), "\n")
	for _, a := range additions() {
		if versionFeatures(1).Has(a.feature) || !AllFeatures().Has(a.feature) {
			t.Errorf("%s came with feature %q", a.part, a.feature)
		}
		want = append(want, a.part)
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

// without returns all features but some.
func without(features ...Feature) Features {
	return slices.DeleteFunc(AllFeatures(), Features(features).Has)
}

// TestAdditionsAreRefusedByName sends everything that came after version 1 to a
// guest without the feature, and to one with it.
func TestAdditionsAreRefusedByName(t *testing.T) {
	requests := map[string]*Request{
		"operation grant.open": {Op: OpGrantOpen},
		"operation grant.end":  {Op: OpGrantEnd},
		"operation taken":      {Op: OpAckLast},
		"grant":                {Op: OpPing, Grant: &Grant{}},
		"grant.id":             {Op: OpPing, Grant: &Grant{ID: "g"}},
		"grant.graceMs":        {Op: OpPing, Grant: &Grant{GraceMs: 1}},
		"grant.shared":         {Op: OpPing, Grant: &Grant{Shared: true}},
		"port.grant":           {Op: OpPortListen, Port: &Port{Grant: "g"}},
		"exec.grant":           {Op: OpExec, Exec: &Exec{Grant: "g"}},
		"exec.while":           {Op: OpExec, Exec: &Exec{While: "p"}},
		"port.who":             {Op: OpPortListen, Port: &Port{WithGrant: true}},

		"exec.followed":            {Op: OpExec, Exec: &Exec{Followed: true}},
		"operation follow":         {Op: OpFollow, Attach: &Attach{}},
		"operation port.group":     {Op: OpPortGroup, Port: &Port{}},
		"operation port.add":       {Op: OpPortAdd, Port: &Port{}},
		"operation port.remove":    {Op: OpPortRemove, Port: &Port{}},
		"operation port.datagrams": {Op: OpPortDatagrams, Port: &Port{}},
		"operation identify":       {Op: OpIdentify},
		"identity":                 {Op: OpPing, Identity: &Identity{}},
		"identity.claim":           {Op: OpPing, Identity: &Identity{Claim: "c"}},
		"identity.name":            {Op: OpPing, Identity: &Identity{Name: "n"}},
		"operation terminate":      {Op: OpTerminate},
		"terminate":                {Op: OpPing, Terminate: &Terminate{}},
		"terminate.waitMs":         {Op: OpPing, Terminate: &Terminate{WaitMs: 1}},
		"terminate.end":            {Op: OpPing, Terminate: &Terminate{End: true}},
		"file.scan.links":          {Op: OpFilePull, File: &File{Scan: &FileScan{Links: true}}},
		"port.address":             {Op: OpPortListen, Port: &Port{Address: "127.77.0.2"}},
	}
	for _, a := range additions() {
		request := requests[a.part]
		if request == nil {
			t.Errorf("no request here uses %s", a.part)
			continue
		}
		err := CheckFeatures(without(a.feature), request)
		refusal, ok := errors.AsType[*Error](err)
		if !a.used(request) || !ok || refusal.Code != CodeNoFeature || !strings.Contains(refusal.Message, strconv.Quote(string(a.feature))) {
			t.Errorf("%s: %v", a.part, err)
		}
		if err := CheckFeatures(AllFeatures(), request); err != nil {
			t.Errorf("%s, to a guest that has it: %v", a.part, err)
		}
		if !request.Needs().Has(a.feature) {
			t.Errorf("%s needs %q", a.part, request.Needs())
		}
	}
}

// TestAFeatureIsRefusedAlone: a guest without a feature is asked for all others.
func TestAFeatureIsRefusedAlone(t *testing.T) {
	plain := map[Feature]*Request{
		"":                {Op: OpPing},
		FeatureExec:       {Op: OpExec, Exec: &Exec{ID: "x", Argv: []Text{"true"}}},
		FeaturePorts:      {Op: OpPortListen, Port: &Port{ID: "x", Port: 80}},
		FeatureFiles:      {Op: OpFileStat, File: &File{}},
		FeatureDirect:     {Op: OpFileDirect, File: &File{}},
		FeatureGrants:     {Op: OpGrantEnd, Grant: &Grant{ID: "g"}},
		FeatureDirectExec: {Op: OpAckLast},
	}
	for missing := range plain {
		for feature, request := range plain {
			refused := CheckFeatures(without(missing), request) != nil
			if missing == FeatureExec && feature == FeatureDirectExec {
				continue // an operation on commands, too
			}
			if refused != (feature == missing && missing != "") {
				t.Errorf("without %q, %s refused: %v", missing, request.Op, refused)
			}
		}
	}
}

// TestFeaturesOfOlderGuests: a peer that announces none has those of its version.
func TestFeaturesOfOlderGuests(t *testing.T) {
	for version, want := range map[int]Features{
		1: {FeatureExec, FeatureFiles, FeaturePorts, FeatureDirect},
		2: {FeatureExec, FeatureFiles, FeaturePorts, FeatureDirect, FeatureDirectExec, FeatureGrants, FeatureExecWhile},
	} {
		if got := versionFeatures(version); !slices.Equal(got, want) {
			t.Errorf("version %d: %q", version, got)
		}
	}
	var answer Welcome
	if refusal := answer.Accept(&Hello{Min: 1, Max: 2}); refusal != nil || answer.Features != nil || answer.Version != 2 {
		t.Errorf("to a host that announces nothing: %+v %v", answer, refusal)
	}
}

// TestUnknownFeatures are ignored where they are announced, and refused by name
// where they are needed.
func TestUnknownFeatures(t *testing.T) {
	var answer Welcome
	refusal := answer.Accept(&Hello{Min: 1, Max: 9, Features: Features{"teleport", FeatureFiles, FeatureFiles}})
	if refusal != nil || !slices.Equal(answer.Features, Features{FeatureFiles}) {
		t.Errorf("%+v %v", answer, refusal)
	}
	refusal = answer.Accept(&Hello{Min: 1, Max: 2, Features: AllFeatures(), Needs: Features{FeatureExec, "teleport"}})
	if refusal == nil || refusal.Code != CodeNoFeature || !strings.Contains(refusal.Message, `"teleport"`) {
		t.Errorf("%v", refusal)
	}
}

// TestCapOnFeatures: as many and as long as they may be, and one more.
func TestCapOnFeatures(t *testing.T) {
	long := Feature(strings.Repeat("x", MaxFeatureName))
	for name, tt := range map[string]struct {
		features Features
		ok       bool
	}{
		"none":       {nil, true},
		"all":        {slices.Repeat(Features{long}, MaxFeatures), true},
		"one more":   {slices.Repeat(Features{"x"}, MaxFeatures+1), false},
		"too long":   {Features{long + "x"}, false},
		"empty":      {Features{""}, false},
		"not a name": {Features{"a b"}, false},
		"terminal":   {Features{"\x1b[2J"}, false},
	} {
		hello := Hello{Min: 1, Max: 1, Client: "c", Kind: KindControl, Features: tt.features}
		needs := Hello{Min: 1, Max: 1, Client: "c", Kind: KindControl, Needs: tt.features}
		for which, err := range map[string]error{"features": hello.check(), "needs": needs.check()} {
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, ErrProtocol) {
				t.Errorf("%s, %s: %v", name, which, err)
			}
		}
	}
}
