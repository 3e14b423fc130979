package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/membudget"
)

// PaceBody bounds how slowly a request's body may arrive. The deadline is gone once
// the body is there: answers may take as long as they do.
func PaceBody(w http.ResponseWriter, r *http.Request, pace membudget.Pace) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	deadline := func(t time.Time) { _ = control.SetReadDeadline(t) } // a connection without deadlines is no worse than before
	r.Body = &pacedBody{Closer: r.Body, body: r.Body, deadline: deadline, pace: pace}
}

// pacedBody is a body whose time begins with the first read.
type pacedBody struct {
	io.Closer
	body     io.Reader
	paced    io.Reader
	pace     membudget.Pace
	deadline func(time.Time)
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if b.paced == nil {
		b.paced = b.pace.Reader(b.body, b.deadline)
	}
	n, err := b.paced.Read(p)
	if errors.Is(err, io.EOF) { // otherwise the server would wait for the rest, for ever
		b.deadline(time.Time{})
	}
	return n, err
}
