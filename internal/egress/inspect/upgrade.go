package inspect

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// upgrade asks the server for another protocol, and relays bytes once it agrees. No
// secret is put in, and none is looked for: the request had no placeholder.
func (s *session) upgrade(out *http.Request) error {
	if !strings.EqualFold(string(s.q.Upgrade), "websocket") {
		return refuse(Protocol, 426, "no other protocol than WebSocket can be asked for")
	}
	out.Header["Connection"], out.Header["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	answer, err := s.upstream.RoundTrip(out.WithContext(ctx))
	if err != nil {
		return upstreamFailure(s.target.Name, err)
	}
	defer answer.Body.Close() //nolint:errcheck // the connection is over
	if answer.StatusCode != http.StatusSwitchingProtocols {
		s.q.Close = true
		_, err = s.answer(answer)
		return err
	}
	server, ok := answer.Body.(io.ReadWriteCloser)
	if !ok {
		return refuse(Upstream, 502, "the server cannot speak another protocol")
	}
	return s.relay(ctx, answer, server)
}

// relay sends the server's agreement and then the bytes of both sides, until one ends.
func (s *session) relay(ctx context.Context, answer *http.Response, server io.ReadWriteCloser) error {
	passedDown(answer.Header)
	head := append(appendStatus(nil, answer.StatusCode), "Connection: Upgrade\r\nUpgrade: websocket\r\n"...)
	head = append(appendHeader(head, answer.Header), "\r\n"...)
	if err := s.write(head); err != nil {
		return quiet(err)
	}
	if err := s.client.SetDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := server.Write(s.reader.Rest()); err != nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { _ = s.client.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	return s.copyBoth(server)
}

// copyBoth ends when either side does: bytes for one that has ended go nowhere.
func (s *session) copyBoth(server io.ReadWriteCloser) error {
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, s.client)
		_ = server.Close()
	})
	_, _ = io.Copy(s.client, server)
	_ = s.client.SetDeadline(time.Unix(1, 0))
	both.Wait()
	return nil
}
