package h1

import (
	"errors"
	"io"
)

// Body reads the body of a message piece by piece.
type Body struct {
	r     *Reader
	mode  int64 // of the message: a length, or Chunked
	left  int64 // of the length, or of the chunk
	began bool  // a chunk was read
	err   error // the end, once reached
}

// RequestBody returns the body of the request that was just read.
func (r *Reader) RequestBody(length int64) Body {
	return Body{r: r, mode: length, left: max(length, 0)}
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
// needed. Nothing may follow the digits.
func (b *Body) endOfChunkLine(line []byte, digits int) (int, error) {
	switch {
	case digits == 0:
		return 0, bad("a chunk has no length")
	case line[digits] != '\r':
		return 0, bad("chunk extensions are not accepted")
	case len(line) == digits+1:
		return 0, nil
	case line[digits+1] != '\n':
		return 0, bad("a chunk's length does not end in CR LF")
	}
	return digits + 2, nil
}

// endChunks reads the empty line that follows the last chunk.
func (b *Body) endChunks() error {
	b.mode, b.left = trailing, 0
	return b.endTrailer()
}

// trailing is the state between the last chunk and the end of the message.
const trailing int64 = -3

func (b *Body) endTrailer() error {
	for {
		in := b.r.buf[b.r.r:b.r.w]
		switch {
		case len(in) >= 2 && in[0] == '\r' && in[1] == '\n':
			b.r.r += 2
			return io.EOF
		case len(in) >= 2 || len(in) == 1 && in[0] != '\r':
			return bad("trailers are not accepted")
		}
		if err := b.fill(); err != nil {
			return err
		}
	}
}
