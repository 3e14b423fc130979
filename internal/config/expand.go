package config

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// variable is ${NAME}, or $${NAME} for the text ${NAME} itself.
var variable = lazyregexp.New(`\$?\$\{([A-Z_][A-Z0-9_]*)\}`)

// variables replaces ${NAME} in strings, as OpenClaw does in its own file. It
// does so in no other file: one that comes with a project could otherwise carry
// the user's environment into a sandbox.
type variables struct {
	env    Environment
	root   *node
	active bool
}

// lookup finds a name in the environment, then in the file's own env part.
func (v variables) lookup(name string) string {
	if v.env.Getenv != nil {
		if value := v.env.Getenv(name); value != "" {
			return value
		}
	}
	env := v.root.get("env")
	if value := env.get("vars").get(name).string(); value != "" {
		return value
	}
	return env.get(name).string()
}

// expand replaces the variables of one string.
func (c *checker) expand(at *path, n *node) {
	if !variable.MatchString(n.text) {
		return
	}
	if !c.variables.active {
		if !mayKeepVariables(at) {
			c.warn(finding{at, n.offset, "variables are replaced in openclaw.json only: this text is used as it is", ""})
		}
		return
	}
	n.text = variable.ReplaceAllStringFunc(n.text, func(text string) string {
		if strings.HasPrefix(text, "$$") {
			return text[1:]
		}
		name := variable.FindStringSubmatch(text)[1]
		value := c.variables.lookup(name)
		if value == "" {
			c.missing(at, n, name)
			return text
		}
		n.expanded = true
		return value
	})
}

// missing reports a variable without a value: as a warning where the text is
// still of use without it, as an error everywhere else.
func (c *checker) missing(at *path, n *node, name string) {
	f := finding{at, n.offset, fmt.Sprintf("the environment variable %s is not set", name), "set it, or write the value"}
	if mayKeepVariables(at) {
		c.warn(f)
		return
	}
	c.error(f)
}

// mayKeepVariables reports whether ${NAME} can stay in the text: a script has
// variables of its own, and models are chosen later.
func mayKeepVariables(at *path) bool {
	for p := at; p != nil; p = p.up {
		if p.key == "setupCommand" || p.key == "model" || p.key == "models" {
			return true
		}
	}
	return false
}
