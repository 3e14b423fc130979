package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Config is a file that was read and found good. It does not change.
type Config struct {
	path        string
	env         Environment
	doc         *json5.Document // nil without a file
	root        *node           // nil without a file
	file        file
	agents      []agentEntry
	defaultMode Mode
	ignored     []string
	warnings    []Problem
	limits      *projectLimits // what a project's file takes away; nil if nothing
}

// agentEntry is one agent of the file.
type agentEntry struct {
	id string
	at *path
	agentFile
}

// Default is the configuration when there is no file at all. Every session is
// sandboxed; everything else is as in an empty file.
func Default(env Environment) *Config {
	return &Config{env: env, defaultMode: ModeAll}
}

// Load reads the file at path. What is wrong inside it is reported as Problems.
func Load(path string, env Environment) (*Config, error) {
	src, err := readFile(path)
	if errors.Is(err, errWritable) {
		return nil, errhint.With(fmt.Errorf("config file %s: %w", path, err), "look at what is in it, then run chmod o-w "+path)
	}
	if err != nil {
		return nil, errhint.With(fmt.Errorf("config file: %w", err), "name another file with --config, or make this one readable")
	}
	return Parse(path, src, env)
}

var errWritable = errors.New("every user of this machine can write it")

// readFile reads no more than one byte beyond what the parser takes. It refuses a
// file that every user can write: what it names runs with the rights of the reader.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		return nil, errWritable
	}
	return io.ReadAll(io.LimitReader(f, json5.MaxSize+1))
}

// Parse is Load for a source at hand; name stands for the file in messages and
// is where relative paths start.
func Parse(name string, src []byte, env Environment) (*Config, error) {
	c := &Config{path: name, env: env, defaultMode: ModeOff}
	if err := c.parse(src); err != nil {
		return nil, err
	}
	return c, nil
}

// tree reads the source into a tree and checks nothing but its syntax.
func (c *Config) tree(src []byte) (err error) {
	if c.doc, err = json5.Parse(src); err != nil {
		return c.syntaxProblem(err)
	}
	if c.root, err = parseTree(c.doc); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return nil
}

func (c *Config) parse(src []byte) (err error) {
	if err := c.tree(src); err != nil {
		return err
	}
	check := &checker{
		report:    &report{file: c.path, doc: c.doc},
		variables: variables{env: c.env, root: c.root, active: c.isOpenClaw()},
	}
	check.checkFile(c.root)
	if err := check.err(); err != nil {
		return err
	}
	c.dropForeign()
	if err := c.decode(); err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	c.ignored = slices.Sorted(slices.Values(check.ignored))
	c.warnShared(check.report)
	sortByPosition(check.warnings)
	c.warnings = check.warnings
	return nil
}

// syntaxProblem gives a syntax error the same form as every other problem.
func (c *Config) syntaxProblem(err error) error {
	syntax, ok := errors.AsType[*json5.SyntaxError](err)
	if !ok {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	return Problems{{
		File: c.path, Message: syntax.Msg, Line: syntax.Line, Column: syntax.Column,
		Hint: "the file is JSON5: JSON with comments, trailing commas and keys without quotes",
	}}
}

// decode fills the Go types. Agents are decoded one by one, because their order
// counts and a map has none.
func (c *Config) decode() error {
	if err := json.Unmarshal(c.root.json(), &c.file); err != nil {
		return err
	}
	at := (*path)(nil).child("agents")
	for _, a := range agentNodes(at, c.root.get("agents")) {
		entry := agentEntry{id: a.id, at: a.at}
		if err := json.Unmarshal(a.node.json(), &entry.agentFile); err != nil {
			return err
		}
		c.agents = append(c.agents, entry)
	}
	return nil
}

// Path is the file's name, "" if there is none.
func (c *Config) Path() string { return c.path }

// Agents returns the ids of all agents in the order of the file. There is
// always one: MainAgent if the file has none.
func (c *Config) Agents() []string {
	if len(c.agents) == 0 {
		return []string{MainAgent}
	}
	ids := make([]string, len(c.agents))
	for i, a := range c.agents {
		ids[i] = a.id
	}
	return ids
}

// DefaultAgent is the agent of session keys that name none: the one marked as
// default, else the first of agents.list; agents.entries has no first, so there
// main goes before the others.
func (c *Config) DefaultAgent() string {
	for _, a := range c.agents {
		if a.Default != nil && *a.Default {
			return a.id
		}
	}
	ids := c.Agents()
	if c.file.Agents != nil && c.file.Agents.Entries != nil && slices.Contains(ids, MainAgent) {
		return MainAgent
	}
	return ids[0]
}

// SessionConfig is session.*: how session keys are read.
type SessionConfig struct {
	MainKey string `json:"mainKey"`
	Scope   string `json:"scope"` // "per-sender" or "global"
}

// Session returns session.* with defaults. The main session may be named by
// agents.defaults.session.mainKey too.
func (c *Config) Session() SessionConfig {
	s, written := SessionConfig{MainKey: "main", Scope: "per-sender"}, orEmpty(c.file.Session)
	below := orEmpty(orEmpty(orEmpty(c.file.Agents).Defaults).Session)
	if key := cmp.Or(written.MainKey, below.MainKey); key != nil {
		s.MainKey = strings.TrimSpace(*key)
	}
	if written.Scope != nil {
		s.Scope = *written.Scope
	}
	return s
}

// Models returns models.* as written.
func (c *Config) Models() Models { return *orEmpty(c.file.Models) }

// Ignored returns the top-level parts that belong to other programs.
func (c *Config) Ignored() []string { return slices.Clone(c.ignored) }

// Warnings returns what is worth knowing about a good file: settings without
// effect, old keys, ids that are read in another form.
func (c *Config) Warnings() []Problem { return slices.Clone(c.warnings) }

// lineOf returns the line on which the place is written, 0 if it is not.
func (c *Config) lineOf(at *path) int {
	if c.root == nil {
		return 0
	}
	_, offset, ok := at.find(c.root)
	if !ok {
		return 0
	}
	return c.doc.Position(offset).Line
}
