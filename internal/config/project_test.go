package config

import (
	"fmt"
	"github.com/atoll-run/atoll/internal/config/shape"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// schemaKey is one key of the schema that has a rule of its own.
type schemaKey struct {
	place string // where it can be written
	typ   string // the type that holds it
	field shape.Field
	rule  projectRule
}

// schemaKeys returns every key that can be written in a file, down to those
// whose rule holds for everything inside them.
func schemaKeys(s *shape.Shape, place string) (keys []schemaKey) {
	for _, f := range s.Fields() {
		key := schemaKey{strings.TrimPrefix(place+"."+f.Key, "."), defName(s.GoType), f, ruleOf(defName(s.GoType), f.Key)}
		keys = append(keys, key)
		if key.rule != ruleWithin {
			continue
		}
		inside := f.Shape
		for inside.Kind == shape.KindList || inside.Kind == shape.KindRecord {
			inside = inside.Elem
		}
		keys = append(keys, schemaKeys(inside, key.place)...)
	}
	return keys
}

func topShape() *shape.Shape { return shape.Of(reflect.TypeFor[file](), shape.Limits{}) }

// TestProjectRulesCoverTheSchema: a key that is added to the file has to be put
// into exactly one list of projectRules, and the lists name no other keys.
func TestProjectRulesCoverTheSchema(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range schemaKeys(topShape(), "") {
		seen[key.typ+"."+key.field.Key] = true
		lists := 0
		for _, names := range projectRules[key.typ] {
			if slices.Contains(strings.Fields(names), key.field.Key) {
				lists++
			}
		}
		if lists != 1 {
			t.Errorf("%s: in %d lists of projectRules[%q]: decide whether it narrows or needs trust", key.place, lists, key.typ)
		}
		if key.rule == ruleWord && strictWords[key.typ+"."+key.field.Key] == nil {
			t.Errorf("%s: no strict words", key.place)
		}
	}
	for typ, lists := range projectRules {
		for _, names := range lists {
			for name := range strings.FieldsSeq(names) {
				if !seen[typ+"."+name] {
					t.Errorf("projectRules[%q] names %q, which the schema has not", typ, name)
				}
			}
		}
	}
}

// permissive is a configuration that has something of everything to lose.
const permissive = `{
	tools: {host: true, web: {search: {enabled: true}, fetch: {enabled: true}}},
	agents: {list: [{id: "main", workspace: "/w", sandbox: {
		mode: "off", workspaceAccess: "rw", networkAllow: ["web_fetch"], networkExecAllow: ["gh *"], dangerouslyAllowSecretEnv: ["X_TOKEN"],
		docker: {
			network: "bridge", readOnlyRoot: false, capDrop: ["NET_RAW"], memory: "8g", pidsLimit: 1000, cpus: 8,
			dangerouslyAllowReservedContainerTargets: true, dangerouslyAllowExternalBindSources: true, dangerouslyAllowContainerNamespaceJoin: true,
		},
		browser: {
			enabled: true, evaluate: true, profile: "agent", cdp: "operator", dangerouslyNoSandbox: true, dangerouslyIgnoreCertificates: true,
			egress: {mode: "public", allow: ["a.example.org"], private: ["10.0.0.0/8"], services: [5432]},
		}, sync: {mode: "auto"},
		egress: {mode: "public", allow: ["a.example.org"], private: ["10.0.0.0/8"], services: [5432]},
	}, llm: {bodyPolicy: "open"}}]},
	llm: {unpriced: "count"},
	relay: {repository: "https://git.example.org/a/b"},
	gateway: {limits: {sandboxes: 100, usd: 100}},
	mcp: {allowDestroy: true},
}`

// effect is everything that a configuration says, as text.
func effect(t *testing.T, c *Config) string {
	t.Helper()
	agent, err := c.Resolve("main")
	if err != nil {
		t.Fatal(err)
	}
	llm, err := c.LLM()
	if err != nil {
		t.Fatal(err)
	}
	relay, err := c.Relay()
	if err != nil {
		t.Fatal(err)
	}
	runs, err := c.Runs()
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := c.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := c.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	allowDestroy, keepRunning := c.MCP()
	text, err := json.Marshal([]any{agent, secrets, llm, relay, runs, gateway, allowDestroy, keepRunning, c.Web(), c.Session(), c.Models(), c.Agents(), c.DefaultAgent()}, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sample is a value of a shape as JSON, a small one.
func sample(s *shape.Shape) string {
	switch s.Kind {
	case shape.KindText:
		if len(s.Enum) > 0 {
			return `"` + s.Enum[0] + `"`
		}
		if s.Check == "egressDeny" {
			return `"denied.example.org"`
		}
		return `"7"`
	case shape.KindNumber, shape.KindInteger:
		return "1"
	case shape.KindBoolean:
		return "true"
	case shape.KindList:
		return "[" + sample(s.Elem) + "]"
	case shape.KindRecord:
		return `{"size":` + sample(s.Elem) + "}"
	case shape.KindChoice:
		return sample(s.Choices[0])
	case shape.KindObject:
		var members []string
		for _, f := range s.Fields() {
			members = append(members, `"`+f.Key+`":`+sample(f.Shape))
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	return "{}"
}

// strict is a value that counts in a project's file, for a key that narrows.
func (k schemaKey) strict() string {
	switch k.rule {
	case ruleFalse:
		return "false"
	case ruleEmpty:
		return "[]"
	case ruleWord:
		word := `"` + strictWords[k.typ+"."+k.field.Key][0] + `"`
		if k.field.Kind == shape.KindRecord {
			return `{"docs/**":` + word + "}"
		}
		return word
	}
	return sample(k.field.Shape)
}

// document writes a value at a place. Agents are those of the permissive file.
func document(place, value string) string {
	keys := strings.Split(place, ".")
	for i, key := range slices.Backward(keys) {
		inside := i >= 1 && keys[i-1] == "entries" && i == 2
		switch {
		case inside:
			value = fmt.Sprintf(`{"main":{%q:%s}}`, key, value)
		case i == 2 && keys[1] == "list":
			value = fmt.Sprintf(`[{"id":"main",%q:%s}]`, key, value)
		default:
			value = fmt.Sprintf("{%q:%s}", key, value)
		}
	}
	return value
}

// narrowedBy applies a project's file to the permissive configuration, without
// the check that it is a good one: what the check refuses must not count either.
func narrowedBy(t *testing.T, src string) (*Config, []Request) {
	t.Helper()
	own, err := Parse("/home/user/.atoll/atoll.json5", []byte(permissive), Environment{Home: "/home/user", Cwd: "/project"})
	if err != nil {
		t.Fatal(err)
	}
	if src == "" {
		return own, nil
	}
	parsed := &Config{path: "/project/atoll.json5"}
	if err := parsed.tree([]byte(src)); err != nil {
		t.Fatal(err)
	}
	p, err := projectOf(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return own.Narrow(p), p.Ignored
}

// TestProjectKeysOneByOne writes each key of the schema into a project's file.
// A key that needs trust must change nothing and be reported; one that narrows
// must change something.
func TestProjectKeysOneByOne(t *testing.T) {
	own, _ := narrowedBy(t, "")
	before := effect(t, own)
	for _, key := range schemaKeys(topShape(), "") {
		if key.rule == ruleWithin || key.rule == ruleNone {
			continue
		}
		needsTrust := key.rule == ruleTrust || key.rule == ruleRisky
		narrowed, ignored := narrowedBy(t, document(key.place, key.strict()))
		changed := effect(t, narrowed) != before
		if needsTrust && (changed || len(ignored) != 1) {
			t.Errorf("%s needs trust: changed something: %v, reported: %v", key.place, changed, ignored)
		}
		if !needsTrust && (!changed || len(ignored) != 0) {
			t.Errorf("%s narrows: changed something: %v, reported: %v", key.place, changed, ignored)
		}
	}
}

// TestProjectNeverLoosens gives a strict configuration the most permissive file.
func TestProjectNeverLoosens(t *testing.T) {
	strict := `{
		tools: {deny: ["exec"]}, agents: {defaults: {workspace: "/w", sandbox: {mode: "all", workspaceAccess: "none",
			docker: {network: "none", capDrop: ["ALL", "NET_RAW"], memory: "64m", pidsLimit: 10, cpus: 0.5, workspaceLimit: {size: "1m"}}},
			llm: {budgets: {run: {usd: 1}}}}},
		llm: {budgets: {day: {usd: 1}}}, relay: {repository: "https://git.example.org/a/b", protect: {"docs/**": "blocked"}},
		gateway: {limits: {sandboxes: 1, usd: 1}},
	}`
	env := Environment{Home: "/home/user", Cwd: "/project"}
	own, err := Parse("/home/user/.atoll/atoll.json5", []byte(strict), env)
	if err != nil {
		t.Fatal(err)
	}
	loose := strings.Replace(permissive, "llm: {bodyPolicy", "llm: {budgets: {run: {usd: 100}}, bodyPolicy", 1)
	loose = strings.Replace(loose, `a/b"}`, `a/b", protect: {"docs/**": "allowed", "AGENTS.md": "approval"}}`, 1)
	p, err := ParseProject("/project/atoll.json5", []byte(loose), env)
	if err != nil {
		t.Fatal(err)
	}
	if before, after := effect(t, own), effect(t, own.Narrow(p)); before != after {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// TestProjectCannotRaiseWhatIsNotConfigured: some limits hold without being
// configured, and a larger one in a project's file does not replace them.
func TestProjectCannotRaiseWhatIsNotConfigured(t *testing.T) {
	env := Environment{Home: "/home/user", Cwd: "/project"}
	p, err := ParseProject("/project/atoll.json5", []byte(`{
		agents: {defaults: {sandbox: {docker: {pidsLimit: 100000, workspaceLimit: {size: "1t", files: 5000000}}}}},
		llm: {timeouts: {totalMs: 80000000}, limits: {choices: 128}}, gateway: {limits: {connections: 1000000}}, runs: {concurrency: 1000},
	}`), env)
	if err != nil {
		t.Fatal(err)
	}
	own := Default(env)
	if before, after := effect(t, own), effect(t, own.Narrow(p)); before != after {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// TestProjectLosesTheNetworkedHalf: the network of a pair is the networked
// half's, so a sandbox without that half has none.
func TestProjectLosesTheNetworkedHalf(t *testing.T) {
	for _, src := range []string{
		`{agents: {defaults: {sandbox: {networkAllow: [], networkExecAllow: []}}}}`,
		`{agents: {defaults: {sandbox: {docker: {network: "none"}}}}}`,
	} {
		c, _ := narrowedBy(t, src)
		a, err := c.Resolve("main")
		if err != nil {
			t.Fatal(err)
		}
		if a.Sandbox.Docker.Network != "none" || len(a.Sandbox.NetworkAllow)+len(a.Sandbox.NetworkExecAllow) != 0 {
			t.Errorf("%s: network %q, %v, %v", src, a.Sandbox.Docker.Network, a.Sandbox.NetworkAllow, a.Sandbox.NetworkExecAllow)
		}
	}
}
