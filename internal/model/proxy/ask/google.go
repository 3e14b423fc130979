package ask

import "github.com/atoll-run/atoll/internal/model/proxy/jsonscan"

// googleToolMembers are what a tool of Google's API may have that runs on the caller's
// side. Every other member, such as googleSearch, urlContext and codeExecution, is a tool
// of the provider.
var googleToolMembers = setOf("functionDeclarations")

// googleOpaque are members, in lower case, that describe or fill functions on the
// caller's side. Nothing in them is fetched.
var googleOpaque = setOf("args parametersjsonschema response responsejsonschema responseschema")

// configMembers are what generationConfig may have. Members that make the provider choose
// another model, or answer with pictures or sound at another price, are not among them.
var configMembers = setOf("candidateCount enableEnhancedCivicAnswers frequencyPenalty logprobs maxOutputTokens mediaResolution presencePenalty",
	"responseJsonSchema responseLogprobs responseMimeType responseModalities responseSchema seed stopSequences temperature thinkingConfig topK topP")

// googleMember reads one member of the outermost object of Google's API. Names are those
// in camel case only: the provider also takes them with underscores, and two spellings
// of one member could be read differently.
func (r *Reader) googleMember(key []byte) {
	switch name := string(key); {
	case name == "model":
		r.scan.Skip()
		r.refuse("field_not_allowed", name, "the path names the model, and the body must not name one")
	case !members[r.shape][name]:
		r.unknown(key)
	case r.rules.Strict && (name == "cachedContent" || name == "store"):
		r.stored(name)
	case priced[name] != nil:
		r.price(name)
	case name == "generationConfig":
		r.generationConfig()
	case name == "tools":
		r.tools()
	default:
		r.value()
	}
}

// generationConfig reads how an answer is to be made.
func (r *Reader) generationConfig() {
	s := r.scan
	if r.isNull() {
		return
	}
	if s.Kind() != jsonscan.Object {
		s.Skip()
		r.malformed("generationConfig", "must be an object")
		return
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		r.configMember(key)
	}
}

func (r *Reader) configMember(key []byte) {
	name := "generationConfig." + printable(key)
	switch known := configMembers[string(key)]; {
	case !known && !r.rules.Allowed.hasMember([]byte(name)):
		r.scan.Skip()
		r.refuse("field_not_allowed", name, "this field is not known and is not passed on: llm.allowMembers in the configuration allows it")
	case string(key) == "candidateCount":
		r.choices()
	case string(key) == "maxOutputTokens":
		r.maxOutput()
	case string(key) == "responseModalities":
		r.modalities()
	default:
		var space [32]byte
		r.member(appendLower(space[:0], key))
	}
}

// modalities reads what an answer may consist of: only text, because what else there
// is costs more than what is reserved.
func (r *Reader) modalities() {
	s := r.scan
	if r.isNull() {
		return
	}
	if s.Kind() != jsonscan.Array {
		s.Skip()
		r.malformed("generationConfig.responseModalities", "must be a list")
		return
	}
	for s.Open(); s.More(); {
		if string(s.Text()) != "TEXT" {
			r.refuse("field_not_allowed", "generationConfig.responseModalities", "other answers than TEXT cost more than what is reserved")
		}
	}
}
