package h1

import (
	"bytes"
	"errors"
	"io"
)

// Body reads the body of a message piece by piece.
type Body struct {
	r       *Reader
	mode    int64 // of the message: a length, Chunked or UntilClose
	left    int64 // of the length, or of the chunk
	strict  bool  // a caller's: no chunk extensions, no trailers
	began   bool  // a chunk was read
	trailer int
	err     error // the end, once reached
}

// RequestBody is the body of the request just read.
func (r *Reader) RequestBody(length int64) Body {
	return Body{r: r, mode: length, left: max(length, 0), strict: true}
}

// ResponseBody is the body of the answer just read.
func (r *Reader) ResponseBody(length int64) Body {
	return Body{r: r, mode: length, left: max(length, 0)}
}

// Ready reports whether Next has something to say without waiting. The end of a
// chunk alone is nothing: who takes it for more waits with what came before it
// in hand.
func (b *Body) Ready() bool {
	in := b.r.buf[b.r.r:b.r.w]
	switch {
	case b.err != nil || b.mode >= 0 && b.left == 0:
		return true
	case b.mode == trailing:
		return bytes.IndexByte(in, '\n') >= 0
	case b.mode == Chunked && b.left == 0:
		used, size, err := b.parseChunk(in)
		return err != nil || used > 0 && len(in) > used && (size > 0 || bytes.IndexByte(in[used:], '\n') >= 0)
	}
	return len(in) > 0
}

// Next returns the next piece, valid until the next call: io.EOF at the end,
// ErrTruncated if the connection ended before the message did. After a time-out
// it can be called again.
func (b *Body) Next() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	piece, err := b.next()
	if err != nil && !isTimeout(err) {
		b.err = err
	}
	return piece, err
}

func (b *Body) next() ([]byte, error) {
	switch {
	case b.mode == UntilClose:
		return b.untilClose()
	case b.mode == trailing:
		return nil, b.endTrailer()
	case b.mode == Chunked && b.left == 0:
		if err := b.nextChunk(); err != nil {
			return nil, err
		}
	case b.left == 0:
		return nil, io.EOF
	}
	if b.r.Buffered() == 0 {
		if err := b.fill(); err != nil {
			return nil, err
		}
	}
	piece := b.r.buf[b.r.r:b.r.w]
	if int64(len(piece)) > b.left {
		piece = piece[:b.left]
	}
	b.r.r += len(piece)
	b.left -= int64(len(piece))
	return piece, nil
}

func (b *Body) untilClose() ([]byte, error) {
	if b.r.Buffered() == 0 {
		if err := b.r.fill(); err != nil {
			return nil, err
		}
	}
	piece := b.r.buf[b.r.r:b.r.w]
	b.r.r = b.r.w
	return piece, nil
}

// fill reads once; an end here is a truncation.
func (b *Body) fill() error {
	err := b.r.fill()
	if errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	return err
}

// nextChunk reads the end of the chunk before and the length of the next.
// Nothing is used up until all of it is there, so that a time-out can be
// followed by another try.
func (b *Body) nextChunk() error {
	for {
		used, size, err := b.parseChunk(b.r.buf[b.r.r:b.r.w])
		if err != nil {
			return err
		}
		if used > 0 {
			b.r.r += used
			b.began, b.left = true, size
			if size == 0 {
				return b.endChunks()
			}
			return nil
		}
		if err := b.fill(); err != nil {
			return err
		}
	}
}

// parseChunk parses a chunk's first line; used is 0 if more is needed.
func (b *Body) parseChunk(in []byte) (used int, size int64, err error) {
	if b.began {
		if len(in) < 2 {
			return 0, 0, nil
		}
		if in[0] != '\r' || in[1] != '\n' {
			return 0, 0, bad("a chunk is longer than it said")
		}
		used = 2
	}
	line := in[used:]
	digits := 0
	for digits < len(line) && hexDigit(line[digits]) <= 15 {
		size = size<<4 | int64(hexDigit(line[digits]))
		if digits++; digits > maxChunkDigits {
			return 0, 0, bad("a chunk's length is too long")
		}
	}
	if digits == len(line) {
		return 0, 0, nil
	}
	end, err := b.endOfChunkLine(line, digits)
	if err != nil || end == 0 {
		return 0, 0, err
	}
	return used + end, size, nil
}

// endOfChunkLine returns the length of the line with its end; 0 if more is
// needed.
func (b *Body) endOfChunkLine(line []byte, digits int) (int, error) {
	if digits == 0 {
		return 0, bad("a chunk has no length")
	}
	if b.strict && line[digits] != '\r' {
		return 0, bad("chunk extensions are not accepted")
	}
	if !b.strict && line[digits] != '\r' && line[digits] != ';' && line[digits] != ' ' && line[digits] != '\t' {
		return 0, bad("a chunk's length is not a number")
	}
	end := bytes.IndexByte(line[digits:], '\n')
	if end < 0 {
		if len(line)-digits > maxChunkExtension {
			return 0, bad("a chunk extension is too long")
		}
		if len(line)-digits > 1 && b.strict {
			return 0, bad("a chunk's length does not end in CR LF")
		}
		return 0, nil
	}
	if line[digits+end-1] != '\r' || b.strict && end != 1 {
		return 0, bad("a chunk's length does not end in CR LF")
	}
	return digits + end + 1, nil
}

// endChunks reads what follows the last chunk: an empty line, and before it,
// from an upstream, fields that are dropped.
func (b *Body) endChunks() error {
	b.mode, b.left = trailing, 0
	return b.endTrailer()
}

// trailing is the state between the last chunk and the end of the message.
const trailing int64 = -3

func (b *Body) endTrailer() error {
	for {
		in := b.r.buf[b.r.r:b.r.w]
		end := bytes.IndexByte(in, '\n')
		if end < 0 {
			if b.trailer+len(in) > maxTrailer || b.strict && len(in) > 1 {
				return bad("trailers are not accepted")
			}
			if err := b.fill(); err != nil {
				return err
			}
			continue
		}
		if end == 0 || in[end-1] != '\r' {
			return bad("a line does not end in CR LF")
		}
		b.r.r += end + 1
		if end == 1 {
			return io.EOF
		}
		if b.trailer += end; b.strict || b.trailer > maxTrailer {
			return bad("trailers are not accepted")
		}
	}
}
