package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/json5"
)

// leaves returns the paths of all values in v that are not objects.
func leaves(t *testing.T, v any) []string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	var names []string
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		object, ok := v.(map[string]any)
		concatenated := strings.HasSuffix(prefix, ".binds.")
		switch list, isList := v.([]any); {
		case isList && concatenated && len(list) > 0:
			for i := range list {
				names = append(names, fmt.Sprintf("%s[%d]", strings.TrimSuffix(prefix, "."), i))
			}
		case !ok || strings.Contains(prefix, "ulimits.") && strings.Count(prefix, ".") > 2:
			names = append(names, strings.TrimSuffix(prefix, "."))
		default:
			for key, value := range object {
				walk(prefix+key+".", value)
			}
		}
	}
	walk("", tree)
	return names
}

// TestInvariant_ALL_ERRORS_AT_ONCE: one pass over a file reports every mistake
// in it, of every kind, in the order of the file.
//
// Seen to fail with this line at the start of (*checker).value:
//
//	if len(c.errors) > 0 { return }
func TestInvariant_ALL_ERRORS_AT_ONCE(t *testing.T) {
	mistakes := []string{ // one a line, in the order of the file
		`agnets: 1,`,
		`agents: { defaults: { sandbox: {`,
		`mode: "of",`,
		`Mode: "all",`,
		`scope: 1,`,
		`workspaceRoot: "", `,
		`backend: "openshell",`,
		`docker: {`,
		`memroy: 1,`,
		`network: "host",`,
		`binds: ["relative:/x"],`,
		`seccompProfile: "unconfined",`,
		`env: { "1": "x" },`,
		`pidsLimit: 0,`,
		`cpus: 1, cpus: 2,`,
		`},`,
		`} }, list: [`,
		`{},`,
		`{ id: "a" },`,
		`{ id: "A" },`,
		`{ id: "b", default: true }, { id: "c",`,
		`default: true },`,
		`], entries: {} },`,
		`tools: { sandbox: { tools: { allow: ["a"],`,
		`alsoAllow: ["b"] } } },`,
		`gateway: { port: 0 },`,
	}
	lines := []int{2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 19, 21, 23, 24, 26, 27}
	_, err := config.Parse("atoll.json5", []byte("{\n"+strings.Join(mistakes, "\n")+"\n}"), testEnv())
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var got []int
	for _, p := range problems {
		got = append(got, p.Line)
		if p.Path == "" || p.Message == "" || p.Column == 0 {
			t.Errorf("incomplete: %+v", p)
		}
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("lines with problems (- want, + got):\n%s\n%v", diff, err)
	}
}

func TestMaxProblems(t *testing.T) {
	src := []byte("{agents:{defaults:{sandbox:{")
	for i := range 2 * config.MaxProblems {
		src = fmt.Appendf(src, "k%d:1,", i)
	}
	_, err := config.Parse("atoll.json5", append(src, "}}}}"...), testEnv())
	problems, _ := errors.AsType[config.Problems](err)
	if len(problems) != config.MaxProblems+1 {
		t.Fatalf("%d problems", len(problems))
	}
	if last := problems[config.MaxProblems].Message; !strings.Contains(last, "more problems") {
		t.Errorf("the last one says %q", last)
	}
}

func TestProblemAsJSON(t *testing.T) {
	_, err := config.Parse("atoll.json5", []byte("{\n  gatewy: 1}"), testEnv())
	problems, _ := errors.AsType[config.Problems](err)
	text, err := json.Marshal(map[string]any{"errors": problems})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"errors":[{"path":"gatewy","message":"unknown key, did you mean \"gateway\"?","line":2,"column":3,"hint":"write gateway"}]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
}

// TestSecretsAreNotShown puts a secret wherever one could be and looks for it
// in everything that is printed.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "hunter2hunter2"
	env := testEnv()
	env.Getenv = func(name string) string {
		if name == "SECRET" {
			return secret
		}
		return ""
	}
	for _, src := range []string{
		`{models:{providers:{p:{apiKey:"` + secret + `",headers:{h:"` + secret + `"}}}}}`,
		`{agents:{defaults:{sandbox:{docker:{env:{"1X":"` + secret + `",Y:"` + secret + `\n"}}}}}}`,
		`{agents:{defaults:{sandbox:{docker:{dns:["${SECRET}"],memory:"${SECRET}",ulimits:{core:"${SECRET}"},binds:["${SECRET}:/x"]}}}}}`,
		`{agents:{defaults:{sandbox:{mode:"${SECRET}",backend:"${SECRET}"}}},gateway:{auth:{token:"` + secret + `"}}}`,
	} {
		cfg, err := config.Parse("/project/openclaw.json", []byte(src), env)
		shown := fmt.Sprintf("%v %+v", err, err)
		if err == nil {
			models, merr := json.Marshal(cfg.Models())
			shown += fmt.Sprintf("%v %+v %#v %s %v", cfg.Models(), cfg.Models(), cfg.Models(), models, merr)
			shown += fmt.Sprint(cfg.Warnings())
		}
		if strings.Contains(shown, secret) {
			t.Errorf("%s\nshows the secret: %s", src, shown)
		}
	}
}

func TestSecretReveal(t *testing.T) {
	cfg, err := config.Parse("a", []byte(`{models:{providers:{p:{apiKey:"k"},q:{apiKey:{source:"env",id:"K"}}}}}`), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	providers := cfg.Models().Providers
	if got := providers["p"].APIKey.Reveal(); got != "k" {
		t.Errorf("key is %q", got)
	}
	if diff := cmp.Diff(&config.SecretRef{Source: "env", ID: "K"}, providers["q"].APIKey.Ref); diff != "" {
		t.Error(diff)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "atoll.json5")
	if err := os.WriteFile(name, []byte(`{agents:{defaults:{workspace:"ws"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(name, testEnv())
	if err != nil {
		t.Fatal(err)
	}
	a, err := cfg.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "ws"); a.Workspace != want || cfg.Path() != name {
		t.Errorf("workspace %s of %s, want %s", a.Workspace, cfg.Path(), want)
	}
	writable := filepath.Join(dir, "writable.json5")
	if err := errors.Join(os.WriteFile(writable, []byte(`{}`), 0o600), os.Chmod(writable, 0o602)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "missing"), writable} {
		if _, err := config.Load(bad, testEnv()); err == nil {
			t.Errorf("%s was loaded", bad)
		}
	}
}

func TestFileTooLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "atoll.json5")
	if err := os.WriteFile(name, slices.Repeat([]byte(" "), json5.MaxSize+2), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(name, testEnv()); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

// TestSchema holds the JSON Schema against the golden inputs: good ones are
// valid, and those whose mistakes a schema can see are not.
func TestSchema(t *testing.T) {
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "testdata/schema.golden.json", string(text)+"\n")
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range inputs(t, "testdata/good") {
		if err := resolved.Validate(instance(t, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"types", "unknown-keys", "not-an-object"} {
		if err := resolved.Validate(instance(t, "testdata/bad/"+name+".json5")); err == nil {
			t.Errorf("%s is valid", name)
		}
	}
}

// TestSchemaRefuses looks at single mistakes, so that one cannot hide another.
func TestSchemaRefuses(t *testing.T) {
	text, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	sandbox := func(s string) string { return `{"agents":{"defaults":{"sandbox":{` + s + `}}}}` }
	docker := func(s string) string { return sandbox(`"docker":{` + s + `}`) }
	for _, tt := range []struct {
		src string
		ok  bool
	}{
		{sandbox(`"mode":"all"`), true}, {sandbox(`"mode":"some"`), false}, {sandbox(`"moed":"all"`), false},
		{docker(`"memory":"1g"`), true}, {docker(`"memory":5`), true}, {docker(`"memory":true`), false},
		{docker(`"setupCommand":"a"`), true}, {docker(`"setupCommand":["a"]`), true}, {docker(`"setupCommand":{}`), false},
		{docker(`"ulimits":{"core":1}`), true}, {docker(`"ulimits":{"core":"1:2"}`), true},
		{docker(`"ulimits":{"core":{"soft":1}}`), true}, {docker(`"ulimits":{"core":{"other":1}}`), false},
		{docker(`"ulimits":{"core":1.5}`), false}, {docker(`"ulimits":{"cores":1}`), false},
		{docker(`"cpus":0.5`), true}, {docker(`"cpus":0`), false}, {docker(`"pidsLimit":0`), false},
		{docker(`"env":{"A":"b"}`), true}, {docker(`"env":{"1":"b"}`), false}, {docker(`"env":{"A":1}`), false},
		{`{"agents":{"defaults":{"model":"a/b"}}}`, true}, {`{"agents":{"defaults":{"model":{"primary":"a"}}}}`, true},
		{`{"agents":{"defaults":{"model":1}}}`, false}, {`{"agents":{"defaults":{"heartbeat":{"every":"0"}}}}`, true},
		{`{"agents":{"entries":{"a b":{}}}}`, false}, {`{"channels":{"x":1}}`, true}, {`{"gateway":{"port":0}}`, false},
	} {
		var value any
		if err := json.Unmarshal([]byte(tt.src), &value); err != nil {
			t.Fatalf("%s: %v", tt.src, err)
		}
		if err := resolved.Validate(value); tt.ok != (err == nil) {
			t.Errorf("%s: %v", tt.src, err)
		}
	}
}

func instance(t *testing.T, name string) any {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json5.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(doc.JSON, &value, jsontext.AllowDuplicateNames(true)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// session may also be written below agents.defaults; session itself wins.
func TestSessionBelowDefaults(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "main",
		`{agents: {defaults: {session: {mainKey: "home"}}}}`:                              "home",
		`{agents: {defaults: {session: {mainKey: "home"}}}, session: {mainKey: "other"}}`: "other",
	} {
		c, err := config.Parse("atoll.json5", []byte(text), config.Environment{Home: "/h", Cwd: "/h"})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Session().MainKey; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
