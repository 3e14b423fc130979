package audit

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the type of a record.
type Kind string

// The kinds.
const (
	Model    Kind = "model"    // a request to a model
	Exec     Kind = "exec"     // a command that was started in a sandbox
	File     Kind = "file"     // a decision of the sync gate about a file
	Egress   Kind = "egress"   // a connection out of a sandbox
	Git      Kind = "git"      // a step of the relay
	Approval Kind = "approval" // a question to a person, and its answer
	Login    Kind = "login"    // a token of the gateway that was used or refused
	Browser  Kind = "browser"  // a program or a person at a browser in a sandbox
	Pool     Kind = "pool"     // a sandbox that came out of a pool, or a pool that was resized
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Model, Exec, File, Egress, Git, Approval, Login, Browser, Pool} }

// ParseKinds reads a list of kinds, separated by commas; "" is none.
func ParseKinds(text string) (kinds []Kind, err error) {
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		kind := Kind(strings.TrimSpace(name))
		if !slices.Contains(Kinds(), kind) {
			return nil, fmt.Errorf("unknown kind %.40q; the kinds are %s", name, join(Kinds()))
		}
		kinds = append(kinds, kind)
	}
	return kinds, nil
}

func join(kinds []Kind) string {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	return strings.Join(names, ", ")
}

// KindOf returns the kind of a stored record, by its member kind. Records of
// earlier releases have "llm" and "llm-replay" for models and "relay STEP" for
// git, or no kind at all, which is a model's.
func KindOf(stored string) Kind {
	switch {
	case stored == "", stored == "call", strings.HasPrefix(stored, "llm"):
		return Model
	case strings.HasPrefix(stored, "relay "):
		return Git
	}
	return Kind(stored)
}
