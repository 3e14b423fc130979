package ask

import (
	"bytes"

	"github.com/atoll-run/atoll/internal/llm/jsonscan"
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
	if r.shape == Embeddings {
		r.embeddingsMember(key)
		return
	}
	switch string(key) {
	case "model":
		r.model()
	case "stream":
		r.ask.Stream = r.flag("stream")
	case "n", "best_of":
		if n, said := r.number("n"); said {
			r.ask.N = max(n, r.ask.N)
			if n < 1 {
				r.malformed("n", "must be at least 1")
			}
		}
	case "max_tokens", "max_completion_tokens", "max_output_tokens":
		if n, said := r.number("max_tokens"); said {
			r.ask.MaxOutput = max(n, r.ask.MaxOutput)
			if n < 0 {
				r.malformed("max_tokens", "must not be negative")
			}
		}
	case "stream_options":
		r.streamOptions()
	case "tools":
		r.tools()
	case "metadata":
		r.metadata()
	case "service_tier":
		r.tier()
	default:
		r.otherMember(key)
	}
}

// otherMember reads a member that needs no reading, only a judgement.
func (r *Reader) otherMember(key []byte) {
	var space [32]byte
	lower := fold(space[:0], key)
	name := string(lower)
	switch {
	case isControl(lower):
		r.refuse("field_not_allowed", printable(lower), "this field steers the gateway behind and is not passed on")
	case !bytes.Equal(lower, key) && isKnown(name):
		r.malformed(name, "must be written in lower case")
	case r.rules.Strict && isStored(name):
		r.stored(name)
	default:
		r.member(lower)
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
		r.refuse("provider_egress", name, "the provider may not fetch, keep or run anything for a sandbox without a network")
	}
}

func (r *Reader) model() {
	model := r.scan.Text()
	if r.scan.Err() != nil {
		r.malformed("model", "must be a string")
		return
	}
	for _, c := range model {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			r.malformed("model", "holds a character that a name of a model cannot have")
			return
		}
	}
	if len(model) == 0 || len(model) > maxModel || bytes.Contains(model, []byte("://")) {
		r.malformed("model", "is not the name of a model")
		return
	}
	r.ask.Model = bytes.Clone(model)
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

// metadata may say anything but what steers the gateway.
func (r *Reader) metadata() {
	s := r.scan
	if s.Kind() != jsonscan.Object {
		s.Skip()
		return
	}
	s.Open()
	for key, ok := s.Key(); ok; key, ok = s.Key() {
		var space [32]byte
		if lower := fold(space[:0], key); isMetadataControl(lower) {
			r.refuse("field_not_allowed", "metadata."+printable(lower), "this field steers the gateway behind and is not passed on")
		}
		s.Skip()
	}
}

// tier lets a request be served slower, never dearer.
func (r *Reader) tier() {
	if r.scan.Kind() == jsonscan.Null {
		r.scan.Word()
		return
	}
	switch string(r.scan.Text()) {
	case "auto", "default", "flex", "standard_only", "standard":
	default:
		r.refuse("field_not_allowed", "service_tier", "only the usual tiers are allowed")
	}
}
