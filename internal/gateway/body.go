package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/internal/membudget"
)

// PaceBody bounds how slowly the body of a request may arrive. The read deadline is
// removed at the end of the body, so that answers may take longer.
func PaceBody(w http.ResponseWriter, r *http.Request, pace membudget.Pace) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	deadline := func(t time.Time) { _ = control.SetReadDeadline(t) } // a connection without deadlines is no worse than before
	r.Body = &pacedBody{Closer: r.Body, body: r.Body, deadline: deadline, pace: pace}
}

// pacedBody is a request body whose pace is measured from the first read.
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
	if errors.Is(err, io.EOF) { // the server reads on this connection again after the answer
		b.deadline(time.Time{})
	}
	return n, err
}
