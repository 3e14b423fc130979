// Package config turns the configuration file into settings that can be used.
// It reports every problem at once, each with its field path and position.
//
// A file goes this way: package environment looks for it, json5 makes it JSON, tree.go
// keeps its order, duplicates and positions, check.go compares it with the
// shape (package shape) of the Go types in file*.go and models.go, config.go decodes
// it into them, merge*.go and resolve.go bring the built-in values, the common
// ones and an agent's own together. To add a key: one field in file*.go, one in
// agent.go, one line in the merge; the check and the JSON Schema follow.
//
// A file that lies in a project may only take away: project_rules.go has the
// rule of every key, project.go filters the file and narrow*.go applies what is
// left. A new key needs a line in project_rules.go.
//
// The package reads one file and the environment it is given; it decides
// nothing about sessions, tools or paths (package policy does) and never
// touches the host paths that it names (package hostpath does).
package config
