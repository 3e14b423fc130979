package inspect

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

// exchange judges and serves the request that was read, and reports whether another
// may follow on the connection.
func (s *session) exchange(ctx context.Context) (again bool, err error) {
	if r := s.check(); r != nil {
		return false, r
	}
	d, r := s.judge(ctx)
	if r != nil {
		return false, r
	}
	out := s.newRequest(ctx)
	if err := s.inject(out, &d); err != nil {
		return false, err
	}
	if err := s.target.Record(string(s.q.Method), pathOf(s.q.Target), d); err != nil {
		return false, refuse(Denied, 503, "the request cannot be recorded")
	}
	if s.q.Upgrade != nil {
		return false, s.upgrade(out)
	}
	return s.send(out)
}

// newRequest returns the request for the server, without a body.
func (s *session) newRequest(ctx context.Context) *http.Request {
	t := s.target
	address, host, scheme := t.Name+":"+strconv.Itoa(t.Port), t.Name, "https"
	if t.Port != 443 && t.Port != 80 {
		host = address
	}
	if t.PlainUpstream {
		scheme = "http"
	}
	out := &http.Request{
		Method: string(s.q.Method), URL: &url.URL{Scheme: scheme, Host: address, Opaque: string(s.q.Target)}, Host: host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: passedUp(s.q.Fields),
	}
	return out.WithContext(ctx)
}

// inject puts secrets into a request. Where the host has some, the answer must be one
// that they can be found in: not compressed, and not in parts.
func (s *session) inject(out *http.Request, d *rule.Decision) error {
	allowed := d.Secrets
	if s.target.PlainUpstream || s.q.Upgrade != nil {
		allowed = nil
	}
	secrets := s.inspector.options.Secrets
	_, err := secrets.Request(s.target.Name, allowed, string(s.q.Target), out.Header)
	if leak, ok := errors.AsType[*inject.Leak](err); ok {
		return &Refusal{Kind: LeakAttempt, Reason: leak.Error(), Secret: leak.Secret, status: 403}
	}
	if secrets.Answers(s.target.Name) != nil {
		out.Header["Accept-Encoding"] = []string{"identity"}
		delete(out.Header, "Range")
		delete(out.Header, "If-Range")
	}
	return err
}

// send sends a request with its body, and the answer back.
func (s *session) send(out *http.Request) (again bool, err error) {
	body := s.newBody()
	if s.q.Length != 0 {
		out.Body, out.ContentLength = body, s.q.Length
		if s.q.Continue && s.reader.Buffered() == 0 {
			if err := s.write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
				return false, quiet(err)
			}
		}
		if err := body.begin(); err != nil {
			return false, err
		}
	}
	answer, err := s.upstream.RoundTrip(out)
	if err != nil {
		body.end()
		return false, s.failed(err, body)
	}
	defer answer.Body.Close() //nolint:errcheck // it was only read
	s.q.Close = s.q.Close || !body.whole.Load()
	again, err = s.answer(answer)
	body.end()
	if leak := body.leak(); leak != nil {
		leak.status = 0 // it has been answered
		return false, leak
	}
	return again && !s.q.Close, err
}

// failed says why there is no answer.
func (s *session) failed(err error, body *requestBody) error {
	if leak := body.leak(); leak != nil {
		return leak
	}
	if failure := body.failure(); failure != nil {
		return s.badBody(failure)
	}
	return upstreamFailure(s.target.Name, err)
}
