package headstart

import (
	"strings"

	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"github.com/atoll-run/atoll/internal/policy/variable"
)

// environment is that of the command, in an engine's order: the container's own,
// what the call adds, and HOME unless one of them has it.
func (c *call) environment(e *entry.Entry) bool {
	if !c.put(entry.DefaultPath) || !c.put(c.join("HOSTNAME=", e.Hostname)) || !c.putOwn(e.Env) {
		return false
	}
	for _, file := range c.line.files.all() {
		if text, ok := c.readPlain(file); !ok || !c.putLines(text) {
			return false
		}
	}
	for _, given := range c.line.vars.all() {
		if !c.admit(given) {
			return false
		}
	}
	if e.Home == "" || c.index("HOME") < c.count {
		return true
	}
	return c.put(c.join("HOME=", e.Home))
}

func (c *call) putOwn(variables string) bool {
	for more := variables != ""; more; {
		var own string
		if own, variables, more = strings.Cut(variables, entry.End); !c.put(own) {
			return false
		}
	}
	return true
}

func (c *call) putLines(text string) bool {
	for more := true; more; {
		var line string
		line, text, more = strings.Cut(text, "\n")
		given, _, ok := entry.Line(line)
		if !ok || given != "" && !c.admit(given) {
			return false
		}
	}
	return true
}

// admit adds a variable that may enter every sandbox. Why another may not is for
// others to say.
func (c *call) admit(given string) bool {
	name, value, ok := strings.Cut(given, "=")
	return ok && variable.Reason(name, value) == "" && !variable.IsSecret(name) && c.put(given)
}

// put adds a variable, or replaces the one of its name.
func (c *call) put(given string) bool {
	name, _, ok := strings.Cut(given, "=")
	at := c.index(name)
	if !ok || name == "" || at == len(c.variables) {
		return false
	}
	c.variables[at] = given
	c.count = max(c.count, at+1)
	return true
}

// index is where a variable is, or would be.
func (c *call) index(name string) int {
	for i, given := range c.variables[:c.count] {
		if key, _, _ := strings.Cut(given, "="); key == name {
			return i
		}
	}
	return c.count
}
