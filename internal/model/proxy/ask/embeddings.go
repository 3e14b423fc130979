package ask

import "github.com/atoll-run/atoll/internal/model/proxy/jsonscan"

// Limits of a request for vectors.
const (
	maxInputs     = 2048
	maxDimensions = 8192
)

// embeddingsMember reads one member of a request for vectors.
func (r *Reader) embeddingsMember(key []byte) {
	switch string(key) {
	case "model":
		r.model()
	case "input":
		r.texts()
	case "encoding_format":
		switch string(r.scan.Text()) {
		case "float", "base64":
		default:
			r.malformed("encoding_format", "must be float or base64")
		}
	case "dimensions":
		if n, said := r.number("dimensions"); said && (n < 1 || n > maxDimensions) {
			r.malformed("dimensions", "is out of range")
		}
	}
}

// texts reads what vectors are wanted of: one text or a list. Numbers of
// tokens, which are not readable in a record, are refused, and so are addresses,
// which a provider would fetch.
func (r *Reader) texts() {
	s := r.scan
	switch s.Kind() {
	case jsonscan.String:
		r.inputs++
		s.Skip()
	case jsonscan.Array:
		for s.Open(); s.More(); {
			if s.Kind() != jsonscan.String {
				r.malformed("input", "must be a text or a list of texts")
				return
			}
			if r.inputs++; r.inputs > maxInputs {
				r.refuse("limit_exceeded", "input", "more texts than allowed are given")
				return
			}
			s.Skip()
		}
	default:
		r.malformed("input", "must be a text or a list of texts")
	}
}
