package inspect

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/atoll-run/atoll/internal/h1"
)

// Kind is what a connection was refused for.
type Kind string

// The kinds of refusals.
const (
	Denied      Kind = "denied"       // by the rules
	Protocol    Kind = "protocol"     // not HTTP/1.1 as it must be
	LeakAttempt Kind = "leak-attempt" // a placeholder, or another credential, where it may not be
	UntrustedCA Kind = "untrusted-ca" // the program does not accept the sandbox's CA
	HTTP2Only   Kind = "http2-only"   // the program speaks HTTP/2 and nothing else
	Upstream    Kind = "upstream"     // the server could not be reached, verified or understood
)

// Refusal is why a connection ended early. The program inside has been answered.
type Refusal struct {
	Kind         Kind
	Reason, Hint string
	Secret       string // the name of the secret of a leak attempt
	Method, Path string // of the request; "" before there was one
	status       int
}

func (r *Refusal) Error() string { return r.Reason }

func refuse(kind Kind, status int, reason string) *Refusal {
	return &Refusal{Kind: kind, Reason: reason, status: status}
}

// refused has a refusal recorded and returns err.
func (t *Target) refused(err error) error {
	if r, ok := errors.AsType[*Refusal](err); ok && t.Refused != nil {
		t.Refused(r)
	}
	return err
}

// answer returns the HTTP answer to a request that was refused.
func (r *Refusal) answer(name string) []byte {
	body := "egress: " + name + " refused: " + r.Reason + "\n"
	if r.Hint != "" {
		body += "hint: " + r.Hint + "\n"
	}
	out := appendStatus(nil, r.status)
	out = append(out, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"...)
	out = append(h1.AppendLength(out, len(body)), "\r\n"...)
	return append(out, body...)
}

func appendStatus(dst []byte, status int) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(append(dst, ' '), http.StatusText(status)...)
	return append(dst, "\r\n"...)
}
