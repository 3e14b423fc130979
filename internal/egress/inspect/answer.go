package inspect

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/h1"
)

// answer sends an answer to the program, without the values of secrets, and reports
// whether the connection can go on.
func (s *session) answer(answer *http.Response) (again bool, err error) {
	if answer.StatusCode < 200 || answer.StatusCode > 599 {
		return false, refuse(Upstream, 502, "the server answered with status "+strconv.Itoa(answer.StatusCode))
	}
	find := s.inspector.options.Secrets.Answers(s.target.Name)
	passedDown(answer.Header)
	scrubHeader(answer.Header, find)
	body, length, err := scrubbable(answer, find != nil)
	if err != nil {
		return false, err
	}
	head := appendStatus(nil, answer.StatusCode)
	if s.q.Close {
		head = append(head, "Connection: close\r\n"...)
	}
	head = appendHeader(head, answer.Header)
	if !hasBody(answer) {
		return true, quiet(s.write(append(appendLength(head, answer), "\r\n"...)))
	}
	if length >= 0 {
		return s.sendLength(append(h1.AppendLength(head, int(length)), "\r\n"...), body, find, length)
	}
	return s.sendChunks(append(head, "Transfer-Encoding: chunked\r\n\r\n"...), body, find)
}

// hasBody reports whether an answer has a body, as its status and the request's method
// say.
func hasBody(answer *http.Response) bool {
	return answer.Request.Method != http.MethodHead && answer.StatusCode != http.StatusNoContent && answer.StatusCode != http.StatusNotModified
}

// appendLength appends the length that the answer to HEAD says, and that an answer
// without a body has.
func appendLength(head []byte, answer *http.Response) []byte {
	if answer.Request.Method == http.MethodHead && answer.ContentLength >= 0 {
		return h1.AppendLength(head, int(answer.ContentLength))
	}
	return head
}

func appendHeader(head []byte, header http.Header) []byte {
	for name, values := range header {
		if name == "Content-Length" {
			continue
		}
		for _, value := range values {
			head = append(append(append(append(head, name...), ": "...), value...), "\r\n"...)
		}
	}
	return head
}

// scrubHeader takes the values of secrets out of a header.
func scrubHeader(header http.Header, find *inject.Filter) {
	if find == nil {
		return
	}
	for name, values := range header {
		if find.HasName(name) {
			delete(header, name)
			continue
		}
		for i := range values {
			values[i] = find.Text(values[i])
		}
	}
}

// pieceSize is how much of an answer is read at a time.
const pieceSize = 32 << 10

// sendLength sends an answer of a known length.
func (s *session) sendLength(head []byte, body io.Reader, find *inject.Filter, length int64) (bool, error) {
	buf := make([]byte, pieceSize)
	out := head
	for sent := int64(0); ; {
		n, err := body.Read(buf)
		piece := find.Next(buf[:n])
		if errors.Is(err, io.EOF) {
			piece = append(piece, find.Rest()...)
		}
		sent += int64(len(piece))
		if out = append(out, piece...); len(out) > 0 && s.write(out) != nil {
			return false, nil
		}
		out = out[:0]
		if err != nil {
			return errors.Is(err, io.EOF) && sent == length, nil
		}
	}
}

// sendChunks sends an answer whose length is not known.
func (s *session) sendChunks(head []byte, body io.Reader, find *inject.Filter) (bool, error) {
	var out h1.ChunkWriter
	out.Begin(head)
	buf := make([]byte, pieceSize)
	for {
		n, err := body.Read(buf)
		if piece := find.Next(buf[:n]); len(piece) > 0 {
			out.Append(piece)
		}
		whole := errors.Is(err, io.EOF)
		if whole {
			out.Append(find.Rest())
		}
		if text := out.Take(whole); len(text) > 0 && s.write(text) != nil {
			return false, nil
		}
		if err != nil {
			return whole, nil
		}
	}
}
