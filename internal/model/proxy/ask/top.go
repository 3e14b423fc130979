package ask

import (
	"bytes"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

// top reads the outermost object.
func (r *Reader) top() {
	s := r.scan
	if s.Kind() != jsonscan.Object {
		s.Fail(&Refusal{Status: 400, Code: "invalid_json", Reason: "the body must be a JSON object"})
		return
	}
	s.Open()
	r.spots.inside = s.Pos()
	for {
		key, ok := s.Key()
		if !ok {
			return
		}
		r.topMember(key)
	}
}

// topMember reads one member of the outermost object.
func (r *Reader) topMember(key []byte) {
	switch {
	case r.shape.isGoogle():
		r.googleMember(key)
	case isIdentity(key):
		r.identity(string(key))
	case !members[r.shape][string(key)]:
		r.unknown(key)
	case r.shape == Embeddings:
		r.embeddingsMember(key)
	case r.rules.Strict && stored[string(key)]:
		r.stored(string(key))
	case priced[string(key)] != nil:
		r.price(string(key))
	default:
		r.knownMember(key)
	}
}

// knownMember reads a member that is in the dialect's list.
func (r *Reader) knownMember(key []byte) {
	switch string(key) {
	case "model":
		r.model()
	case "stream":
		r.ask.Stream = r.flag("stream")
	case "n", "best_of":
		r.choices()
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		r.maxOutput()
	case "stream_options":
		r.streamOptions()
	case "metadata":
		r.metadata()
	default:
		var space [32]byte
		r.member(appendLower(space[:0], key))
	}
}

// choices reads how many answers are asked for.
func (r *Reader) choices() {
	if n, said := r.number("n"); said {
		r.ask.N = max(n, r.ask.N)
		if n < 1 {
			r.malformed("n", "must be at least 1")
		}
	}
}

// maxOutput reads how many tokens an answer may have.
func (r *Reader) maxOutput() {
	if n, said := r.number("max_tokens"); said {
		r.ask.MaxOutput = max(n, r.ask.MaxOutput)
		if n < 0 {
			r.malformed("max_tokens", "must not be negative")
		}
	}
}

// stored reads a field that would have the provider keep or fetch something:
// only saying no is allowed.
func (r *Reader) stored(name string) {
	if name == "store" {
		r.spots.storeIsSaid = true
	}
	switch kind := r.scan.Kind(); kind {
	case jsonscan.Null:
		if name == "store" && r.shape == Responses { // where nothing said means yes
			r.refuse("provider_storage", name, "must be false here")
		}
		r.scan.Word()
	case jsonscan.False:
		r.scan.Word()
	default:
		r.refuse("provider_egress", name, "the provider may not fetch, keep or run anything for a sandbox without a network: bodyPolicy open allows it")
	}
}

func (r *Reader) model() {
	model := r.scan.Text()
	switch {
	case r.scan.Err() != nil:
		r.malformed("model", "must be a string")
	case !isModel(model):
		r.malformed("model", "must be the name of one model: up to 256 letters, digits and ._:/@+-")
	case r.rules.Strict && bytes.Contains(appendLower(nil, model), []byte(":online")):
		r.refuse("provider_egress", "model", "a model that searches for itself may not be called from a sandbox without a network: bodyPolicy open allows it")
	default:
		r.ask.Model = bytes.Clone(model)
	}
}

// isModel accepts one name. Gateways split names at commas, read addresses, and put
// names into the path of a request, where ".." leads to another model.
func isModel(name []byte) bool {
	for part := range bytes.SplitSeq(name, []byte("/")) {
		if len(part) == 0 || len(bytes.Trim(part, ".")) == 0 {
			return false
		}
	}
	for _, c := range name {
		if !isModelChar(c) {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxModel
}

func isModelChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || bytes.IndexByte([]byte("._:/@+-"), c) >= 0
}

// isNull reads the next value if it is null.
func (r *Reader) isNull() bool {
	return r.scan.Kind() == jsonscan.Null && r.scan.Word() == jsonscan.Null
}

// flag reads true, false or null.
func (r *Reader) flag(field string) bool {
	switch r.scan.Kind() {
	case jsonscan.True, jsonscan.False, jsonscan.Null:
		return r.scan.Word() == jsonscan.True
	}
	r.malformed(field, "must be true or false")
	return false
}

// number reads a whole number or null.
func (r *Reader) number(field string) (n int64, said bool) {
	switch r.scan.Kind() {
	case jsonscan.Null:
		r.scan.Word()
		return 0, false
	case jsonscan.Number:
		if n, ok := r.scan.Int(); ok {
			return n, true
		}
	}
	r.malformed(field, "must be a whole number")
	return 0, false
}

func (r *Reader) streamOptions() {
	s, spots := r.scan, &r.spots
	kind := s.Kind()
	spots.options.start = s.Pos()
	switch kind {
	case jsonscan.Null:
		s.Word()
	case jsonscan.Object:
		s.Open()
		spots.inOptions = s.Pos()
		for key, ok := s.Key(); ok; key, ok = s.Key() {
			spots.hasMembers = true
			if string(key) != "include_usage" {
				s.Skip()
				continue
			}
			s.Kind()
			spots.usage.start = s.Pos()
			r.ask.IncludeUsage = r.flag("stream_options.include_usage")
			spots.usage.end = s.Pos()
		}
	default:
		r.malformed("stream_options", "must be an object")
	}
	spots.options.end = s.Pos()
}

// metadata may say anything but what steers the gateway and who is calling. It
// must be an object: LiteLLM also reads one out of a string.
func (r *Reader) metadata() {
	s := r.scan
	if r.isNull() {
		return
	}
	if s.Kind() != jsonscan.Object {
		s.Skip()
		r.malformed("metadata", "must be an object")
		return
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		r.metadataMember(key)
	}
}

func (r *Reader) metadataMember(key []byte) {
	var space [32]byte
	switch lower := appendLower(space[:0], key); {
	case string(key) == "user_id":
		r.identity("metadata.user_id")
	case isMetadataControl(lower):
		name := printable(lower)
		r.scan.Skip()
		r.refuse("field_not_allowed", "metadata."+name, "this field steers the gateway behind and is not passed on")
	default:
		r.scan.Skip()
	}
}

// identity notes where a request says who is calling: see [Ask.Identify].
func (r *Reader) identity(field string) {
	s := r.scan
	if r.isNull() {
		return
	}
	if s.Kind() != jsonscan.String {
		s.Skip()
		r.malformed(field, "must be a string")
		return
	}
	start := s.Pos()
	s.Skip()
	r.ask.identities[r.ask.numIdentities] = span{start, s.Pos()}
	r.ask.numIdentities++
}
