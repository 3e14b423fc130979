package inspect

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/h1"
)

// Times of a connection. How long it may be idle and live is bounded by the caller.
const (
	requestWait  = 5 * time.Minute // for the next request on a connection
	headTime     = 30 * time.Second
	answerWait   = 5 * time.Minute // for the head of an answer
	writeTimeout = 5 * time.Minute // for one piece to be taken by the program
)

// session is one connection of a program inside.
type session struct {
	inspector *Inspector
	target    *Target
	client    net.Conn
	reader    *h1.Reader
	upstream  *http.Transport
	q         h1.Request
}

func (i *Inspector) serve(ctx context.Context, client net.Conn, t *Target) error {
	s := &session{inspector: i, target: t, client: client, reader: h1.NewReader(client)}
	s.reader.AllowUpgrade = true
	defer s.reader.Release()
	s.upstream = i.transport(t)
	defer s.upstream.CloseIdleConnections()
	stop := context.AfterFunc(ctx, func() { _ = client.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		again, err := s.next(ctx)
		if r, ok := errors.AsType[*Refusal](t.refused(err)); ok {
			s.answerRefusal(r)
			return r
		}
		if err != nil || !again {
			return err
		}
	}
}

// next serves one request and reports whether another may follow.
func (s *session) next(ctx context.Context) (again bool, err error) {
	err = s.reader.ReadRequest(&s.q, h1.HeadTimeouts{First: requestWait, Rest: headTime})
	if p, ok := errors.AsType[*h1.ProtocolError](err); ok {
		return false, refuse(Protocol, p.Status, p.Reason)
	}
	if err != nil { // the program has gone, or is silent
		return false, quiet(err)
	}
	again, err = s.exchange(ctx)
	if r, ok := errors.AsType[*Refusal](err); ok && r.Method == "" {
		r.Method, r.Path = string(s.q.Method), printablePath(s.q.Target)
	}
	return again, err
}

// quiet is nil for the ends of a connection that are no faults.
func quiet(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, h1.ErrTruncated) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// answerRefusal answers a request that was refused, if an answer can still be given.
func (s *session) answerRefusal(r *Refusal) {
	if r.status == 0 || s.write(r.answer(s.target.Name)) != nil {
		return
	}
	h1.Linger(s.client)
}

func (s *session) write(b []byte) error {
	if err := s.client.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	_, err := s.client.Write(b)
	return err
}
