package ask

import (
	"errors"

	"github.com/atoll-run/atoll/internal/model/proxy/jsonscan"
)

// Shape is what kind of request a body is.
type Shape int

// The shapes.
const (
	Chat          Shape = iota // Chat Completions
	Messages                   // Anthropic's Messages
	Count                      // count_tokens of Messages
	Responses                  // OpenAI's Responses
	Compact                    // responses/compact
	Embeddings                 // vectors of texts
	Generate                   // Google's generateContent, whole or as a stream
	GenerateCount              // countTokens of it
)

// IsCount reports whether a request only asks for its size, which costs nothing.
func (s Shape) IsCount() bool { return s == Count || s == GenerateCount }

// isGoogle reports whether a body is of Google's API.
func (s Shape) isGoogle() bool { return s == Generate || s == GenerateCount }

// Rules are the limits of a request.
type Rules struct {
	Strict       bool  // nothing that the provider would fetch, keep or run
	MaxN         int64 // answers a request; 0: 1
	MaxOutput    int64 // tokens a request may ask for; 0: no limit
	InjectUsage  bool  // have the upstream report the usage of a stream
	ForbidUnsent bool  // strict: say store:false where nothing is said
	Allowed      *Allowed
	Model        string // that the path names; the body must not name one then
	Stream       bool   // the path asks for a stream
}

// Ask is what a request asks for.
type Ask struct {
	Model        []byte
	Stream       bool
	N            int64 // answers, at least 1
	MaxOutput    int64 // tokens for each answer; -1: not said
	IncludeUsage bool  // the caller itself wants the usage of a stream
	InputTokens  int64 // estimated from the size, on the high side
	LongCache    bool  // parts are to be kept in the provider's cache for longer than usual
	edits        [maxEdits]Edit
	numEdits     int

	identities    [maxIdentities]span
	numIdentities int
}

// A Refusal is a request that is not passed on.
type Refusal struct {
	Status int    // 400: not understood; 403: not allowed
	Code   string // for programs
	Field  string // "" if it is none in particular
	Reason string
}

func (r *Refusal) Error() string {
	if r.Field == "" {
		return r.Reason
	}
	return r.Field + ": " + r.Reason
}

const (
	maxModel = 256
	// bytesPerToken is how the size of a text becomes an estimate of tokens.
	bytesPerToken = 3
	// mediaTokens is the estimate for a picture or file in a request.
	mediaTokens = 2000
)

// Reader reads requests, one at a time. It keeps memory for the next.
type Reader struct {
	scan   *jsonscan.Scanner
	rules  *Rules
	shape  Shape
	ask    *Ask
	spots  editPoints
	media  int64 // bytes of pictures and files
	medias int64
	inputs int // texts of a request for vectors
}

// NewReader returns a reader.
func NewReader() *Reader { return &Reader{scan: jsonscan.New()} }

// Read reads a body into a. The error is a *Refusal.
func (r *Reader) Read(a *Ask, body []byte, shape Shape, rules *Rules) error {
	*a = Ask{N: 1, MaxOutput: -1, Stream: rules.Stream}
	if shape.isGoogle() {
		a.Model = []byte(rules.Model)
	}
	r.rules, r.shape, r.ask, r.spots, r.media, r.medias = rules, shape, a, editPoints{}, 0, 0
	r.inputs = 0
	if shape == Embeddings {
		a.MaxOutput = 0 // nothing is written
	}
	r.scan.Reset(body)
	r.top()
	if err := r.scan.End(); err != nil {
		return asRefusal(err)
	}
	if err := r.checkWhole(); err != nil {
		return err
	}
	r.planEdits()
	a.InputTokens = (int64(len(body))-r.media)/bytesPerToken + r.medias*mediaTokens
	return nil
}

func asRefusal(err error) error {
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return refusal
	}
	return &Refusal{Status: 400, Code: "invalid_json", Reason: err.Error()}
}

// checkWhole makes the checks that need the whole request.
func (r *Reader) checkWhole() error {
	a := r.ask
	switch most := max(r.rules.MaxN, 1); {
	case len(a.Model) == 0:
		return &Refusal{Status: 400, Code: "model_missing", Field: "model", Reason: "a model must be named"}
	case r.shape == Embeddings && r.inputs == 0:
		return &Refusal{Status: 400, Code: "input_missing", Field: "input", Reason: "a text must be given, or several"}
	case a.N < 1 || a.N > most:
		return &Refusal{Status: 403, Code: "limit_exceeded", Field: "n", Reason: "more answers than allowed are asked for"}
	case r.rules.MaxOutput > 0 && a.MaxOutput > r.rules.MaxOutput:
		return &Refusal{Status: 403, Code: "limit_exceeded", Field: "max_tokens", Reason: "more tokens than allowed are asked for"}
	}
	return nil
}

func (r *Reader) refuse(code, field, reason string) {
	r.scan.Fail(&Refusal{Status: 403, Code: code, Field: field, Reason: reason})
}

func (r *Reader) malformed(field, reason string) {
	r.scan.Fail(&Refusal{Status: 400, Code: "invalid_value", Field: field, Reason: reason})
}
