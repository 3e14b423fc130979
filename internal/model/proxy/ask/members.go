package ask

import (
	"slices"
	"strings"
)

// names is a set of names.
type names map[string]bool

func setOf(lists ...string) names {
	set := names{}
	for _, list := range lists {
		for name := range strings.FieldsSeq(list) {
			set[name] = true
		}
	}
	return set
}

// The members that requests of each dialect may have. A member that is in no
// list is refused, whatever the body policy: [Allowed] adds names.
const (
	everyMember     = "metadata model safety_identifier service_tier stream temperature tool_choice tools top_p user"
	chatMembers     = "best_of chat_template_kwargs enable_thinking frequency_penalty function_call functions include_reasoning logit_bias logprobs max_completion_tokens max_tokens messages min_p n parallel_tool_calls presence_penalty prompt_cache_key prompt_cache_retention reasoning reasoning_effort repetition_penalty response_format seed stop stream_options thinking thinking_budget tool_stream top_k top_logprobs verbosity"
	messagesMembers = "cache_control context_management inference_geo max_tokens messages output_config output_format speed stop_sequences system thinking top_k"
	responseMembers = "client_metadata context_management include input instructions max_output_tokens max_tool_calls parallel_tool_calls prompt_cache_key prompt_cache_retention reasoning stream_options text top_logprobs truncation"
	vectorMembers   = "dimensions encoding_format input model safety_identifier user"
	generateMembers = "cachedContent contents generationConfig safetySettings serviceTier store systemInstruction toolConfig tools"
	countMembers    = "contents"
)

// storedMembers have the provider keep, fetch or run something. The open policy
// passes them on in every dialect; the strict one only if they say no.
const storedMembers = "background container conversation enable_search mcp_servers plugins previous_response_id prompt search_parameters store web_search_options"

var stored = setOf(storedMembers)

// members are the sets by shape.
var members = [...]names{
	Chat:       setOf(everyMember, chatMembers, storedMembers),
	Messages:   setOf(everyMember, messagesMembers, storedMembers),
	Count:      setOf(everyMember, messagesMembers, storedMembers),
	Responses:  setOf(everyMember, responseMembers, storedMembers),
	Compact:    setOf(everyMember, responseMembers, storedMembers),
	Embeddings: setOf(vectorMembers),

	Generate:      setOf(generateMembers),
	GenerateCount: setOf(countMembers),
}

// priced are members that change what a call costs, with the values that do not
// make it dearer than what is reserved for it.
var priced = map[string][]string{
	"service_tier":  {"auto", "default", "flex", "standard", "standard_only"},
	"speed":         {"standard"},
	"inference_geo": {"global"},
	"serviceTier":   {"flex", "standard", "unspecified"},
}

// isIdentity names the members that LiteLLM and providers read as the person who
// calls. They are passed on in every dialect, with a value of ours.
func isIdentity(name []byte) bool {
	return string(name) == "user" || string(name) == "safety_identifier"
}

// Allowed are names that the configuration adds to the known ones. A nil one
// adds none.
type Allowed struct{ members, toolMembers, tools names }

// NewAllowed returns additional members, where "tools.NAME" is a member of a
// tool, and additional kinds of tools.
func NewAllowed(members, tools []string) *Allowed {
	a := &Allowed{members: names{}, toolMembers: names{}, tools: setOf(tools...)}
	for _, name := range members {
		if inTool, ok := strings.CutPrefix(name, "tools."); ok {
			a.toolMembers[inTool] = true
		} else {
			a.members[name] = true
		}
	}
	return a
}

func (a *Allowed) hasMember(name []byte) bool     { return a != nil && a.members[string(name)] }
func (a *Allowed) hasToolMember(name []byte) bool { return a != nil && a.toolMembers[string(name)] }
func (a *Allowed) hasTool(kind []byte) bool       { return a != nil && a.tools[string(kind)] }

// unknown refuses a member that is in no list, unless the configuration allows
// it. What controls the gateway behind is refused even then.
func (r *Reader) unknown(key []byte) {
	var space [32]byte
	lower := appendLower(space[:0], key)
	name := printable(lower)
	switch {
	case isControl(lower):
		r.scan.Skip()
		r.refuse("field_not_allowed", name, "this field steers the gateway behind and is never passed on")
	case members[r.shape][string(lower)]:
		r.scan.Skip()
		r.malformed(name, "must be written in lower case")
	case r.rules.Allowed.hasMember(key):
		r.member(lower)
	default:
		name = printable(key)
		r.scan.Skip()
		r.refuse("field_not_allowed", name, "this field is not known and is not passed on: llm.allowMembers in the configuration allows it")
	}
}

// price reads a member that changes what a call costs.
func (r *Reader) price(name string) {
	values := priced[name]
	if !r.isNull() && !slices.Contains(values, string(r.scan.Text())) {
		r.refuse("field_not_allowed", name, "other values than "+strings.Join(values, ", ")+" cost more than what is reserved")
	}
}
