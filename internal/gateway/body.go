package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// timedBody is a body that has to arrive in time.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	most    time.Duration
	begun   bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		_ = b.control.SetReadDeadline(time.Now().Add(b.most)) // a connection without deadlines is no worse than before
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) { // otherwise the server would wait for the rest, for ever
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
