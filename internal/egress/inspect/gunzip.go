package inspect

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// MaxInflated is the most bytes that a compressed answer may become where secrets are
// looked for in it.
const MaxInflated = 256 << 20

var errInflated = errors.New("a compressed answer is too large")

// scrubbable returns the body of an answer, and its length if that is known. An answer
// that secrets are looked for in is decompressed; it is refused in an encoding that
// cannot be read here.
func scrubbable(answer *http.Response, looked bool) (body io.Reader, length int64, err error) {
	encodings := answer.Header["Content-Encoding"]
	if !looked || !hasBody(answer) || len(encodings) == 0 || len(encodings) == 1 && strings.EqualFold(encodings[0], "identity") {
		return answer.Body, answer.ContentLength, nil
	}
	name := strings.ToLower(encodings[0])
	if len(encodings) != 1 || name != "gzip" && name != "x-gzip" {
		return nil, 0, refuse(Upstream, 502, "the server answered in an encoding that secrets cannot be looked for in")
	}
	delete(answer.Header, "Content-Encoding")
	delete(answer.Header, "Etag") // of the compressed form
	return &inflating{source: answer.Body}, -1, nil
}

// inflating decompresses up to MaxInflated bytes.
type inflating struct {
	source io.Reader
	reader *gzip.Reader
	read   int64
}

// Read implements io.Reader.
func (g *inflating) Read(p []byte) (n int, err error) {
	if g.reader == nil {
		if g.reader, err = gzip.NewReader(g.source); err != nil {
			return 0, errInflated
		}
	}
	n, err = g.reader.Read(p)
	if g.read += int64(n); g.read > MaxInflated {
		return 0, errInflated
	}
	return n, err
}
