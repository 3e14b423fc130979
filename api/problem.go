package api

// ProblemType is the media type of problems (RFC 9457).
const ProblemType = "application/problem+json"

// Problem is why a request failed.
type Problem struct {
	Type   string `json:"type" doc:"What kind of problem it is, as a URI; about:blank if the code says it all."`
	Title  string `json:"title" doc:"The kind of problem, for people; the same for every problem of one code."`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty" doc:"What happened this time."`
	Code   string `json:"code" doc:"The kind of problem, for programs."`
	Hint   string `json:"hint,omitempty" doc:"What to do about it."`
	// RequestID finds the request in the gateway's log.
	RequestID string       `json:"requestId,omitempty" doc:"Finds the request in the gateway's log."`
	Errors    []FieldError `json:"errors,omitempty" doc:"What is wrong with single fields."`
}

// FieldError is what is wrong with one member of a body or one parameter.
type FieldError struct {
	Pointer string `json:"pointer" doc:"JSON pointer of the member, or the name of the parameter."`
	Detail  string `json:"detail"`
}

func (p *Problem) Error() string {
	text := p.Title
	if p.Detail != "" {
		text = p.Detail
	}
	for _, e := range p.Errors {
		text += "; " + e.Pointer + ": " + e.Detail
	}
	return text
}
