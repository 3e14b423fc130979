package ask

import (
	"bytes"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

// toolMembers are what the description of a tool may have that runs on the
// caller's side, in any dialect. Gateways take other members for tools of the
// provider, also beside these.
var toolMembers = setOf("allowed_callers cache_control defer_loading description eager_input_streaming format function input_examples input_schema max_characters name output_schema parameters strict tools type")

// toolKinds are the kinds of tools that the caller runs, and datedKinds those
// whose names end in the date of their version. No kind is a function.
var (
	toolKinds  = setOf("apply_patch custom function local_shell namespace")
	datedKinds = []string{"bash_", "memory_", "text_editor_"}
)

// tools reads a list of tools, wherever in a request it is.
func (r *Reader) tools() {
	s := r.scan
	if r.isNull() {
		return
	}
	if s.Kind() != jsonscan.Array {
		r.notATool()
		return
	}
	for s.Open(); s.More(); {
		if s.Kind() != jsonscan.Object {
			r.notATool()
			return
		}
		s.Open()
		for key, ok := s.Key(); ok; key, ok = s.Key() {
			r.toolMember(key)
		}
	}
}

func (r *Reader) notATool() {
	r.scan.Skip()
	r.malformed("tools", "must be a list of objects")
}

// toolMember reads one member of a tool.
func (r *Reader) toolMember(key []byte) {
	var space [32]byte
	name := appendLower(space[:0], key)
	switch {
	case r.rules.Strict && !r.knownToolMembers()[string(key)] && !r.rules.Allowed.hasToolMember(key):
		field := "tools." + printable(key)
		r.scan.Skip()
		r.refuse("provider_egress", field, "this field of a tool is not known and may name something that the provider fetches or runs: llm.allowMembers in the configuration allows it")
	case string(name) == "type" && r.rules.Strict:
		r.toolType()
	default:
		r.member(name)
	}
}

// knownToolMembers returns the members that tools of the request's dialect may have.
func (r *Reader) knownToolMembers() names {
	if r.shape.isGoogle() {
		return googleToolMembers
	}
	return toolMembers
}

func (r *Reader) toolType() {
	if r.isNull() {
		return
	}
	if kind := r.scan.Text(); r.scan.Err() == nil && !runsHere(kind) && !r.rules.Allowed.hasTool(kind) {
		r.refuse("provider_egress", "tools", "a tool of type "+printable(kind)+" is not known to run on the caller's side; "+
			"what a provider runs needs bodyPolicy open, what the caller runs llm.allowTools in the configuration")
	}
}

// runsHere tells the tools that the caller runs from those of the provider.
func runsHere(kind []byte) bool {
	if len(kind) == 0 || toolKinds[string(kind)] {
		return true
	}
	for _, prefix := range datedKinds {
		if date, ok := bytes.CutPrefix(kind, []byte(prefix)); ok && isDate(date) {
			return true
		}
	}
	return false
}

// isDate reports whether a version is written as eight digits.
func isDate(version []byte) bool {
	return len(version) == len("20250124") && len(bytes.Trim(version, "0123456789")) == 0
}
