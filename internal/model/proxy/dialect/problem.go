package dialect

import "strconv"

// Problem is why a request is not answered by the upstream.
type Problem struct {
	Status  int
	Code    string // for programs, such as budget_exceeded
	Message string
	Retry   bool // asking again, later, makes sense
}

// kind returns the dialect's type of error for a status.
func (d Dialect) kind(p *Problem) string {
	if d == Anthropic {
		return anthropicKind(p.Status)
	}
	switch p.Status {
	case 401:
		return "authentication_error"
	case 402:
		return "budget_exceeded"
	case 403:
		return "permission_error"
	case 500, 502, 503, 504:
		return "server_error"
	}
	return "invalid_request_error"
}

func anthropicKind(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404, 405:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 500, 502:
		return "api_error"
	case 503:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	return "invalid_request_error"
}

// googleKind returns Google's name of a status. For a status that Google does not have
// it is one after which clients do not ask again.
func googleKind(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 402, 403:
		return "PERMISSION_DENIED"
	case 404, 405:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 500:
		return "INTERNAL"
	case 502, 503:
		return "UNAVAILABLE"
	case 408, 504:
		return "DEADLINE_EXCEEDED"
	}
	return "INVALID_ARGUMENT"
}

// appendGoogle appends an error as Google writes it. The code for programs is the
// reason of a detail.
func appendGoogle(dst []byte, p *Problem) []byte {
	dst = append(dst, `{"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(p.Status), 10)
	dst = appendText(append(dst, `,"message":`...), p.Message)
	dst = appendText(append(dst, `,"status":`...), googleKind(p.Status))
	dst = appendText(append(dst, `,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"atoll","reason":`...), p.Code)
	return append(dst, `}]}}`...)
}

// AppendError appends the body of an error.
func (d Dialect) AppendError(dst []byte, p *Problem) []byte {
	if d == Google {
		return appendGoogle(dst, p)
	}
	if d == Anthropic {
		dst = append(dst, `{"type":"error","error":`...)
	} else {
		dst = append(dst, `{"error":`...)
	}
	return append(d.appendDetail(dst, p), '}')
}

func (d Dialect) appendDetail(dst []byte, p *Problem) []byte {
	dst = append(dst, `{"type":`...)
	dst = appendText(dst, d.kind(p))
	dst = append(dst, `,"message":`...)
	dst = appendText(dst, p.Message)
	if d != Anthropic {
		dst = append(dst, `,"param":null,"code":`...)
		dst = appendText(dst, p.Code)
	}
	return append(dst, '}')
}

// AppendStreamError appends the event that ends a stream in the middle. SDKs of the
// dialect take it for a final error. Sequence is the number of events before.
func (d Dialect) AppendStreamError(dst []byte, p *Problem, sequence int64) []byte {
	switch d {
	case Anthropic:
		dst = append(dst, "event: error\ndata: "...)
		dst = d.AppendError(dst, p)
	case Responses:
		dst = append(dst, "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":"...)
		dst = strconv.AppendInt(dst, sequence, 10)
		dst = append(dst, `,"response":{"object":"response","status":"failed","error":{"code":`...)
		dst = appendText(dst, failureCode(p))
		dst = append(dst, `,"message":`...)
		dst = appendText(dst, p.Message)
		dst = append(dst, "}}}"...)
	default:
		dst = append(dst, "data: "...)
		dst = d.AppendError(dst, p)
	}
	return append(dst, "\n\n"...)
}

// failureCode returns a code after which clients of Responses do not retry, unless
// the problem allows it.
func failureCode(p *Problem) string {
	if p.Status == 402 {
		return "insufficient_quota"
	}
	return p.Code
}

// appendText appends a JSON string.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029':
			dst = append(dst, ' ')
		default:
			dst = append(dst, string(c)...)
		}
	}
	return append(dst, '"')
}
