package h1

import "strconv"

// AppendLength appends a Content-Length.
func AppendLength(dst []byte, n int) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, "\r\n"...)
}

// AppendStatus appends the first line of an answer.
func AppendStatus(dst []byte, status int) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, reason(status)...)
	return append(dst, "\r\n"...)
}

func reason(status int) string {
	switch {
	case status == 200:
		return "OK"
	case status < 300:
		return "Done"
	case status < 400:
		return "Elsewhere"
	case status < 500:
		return "Refused"
	}
	return "Failed"
}

// LastChunk ends a body in chunks.
const LastChunk = "0\r\n\r\n"

// chunkLead is the most that the length of a chunk takes.
const chunkLead = maxChunkDigits + 2

// ChunkWriter gathers pieces of a body into one chunk, so that many small ones
// cost one write. The zero value with a buffer is ready.
type ChunkWriter struct {
	Buf  []byte // what is to be written, with space for the length in front
	lead int    // of Buf that is head, not chunk
	open bool
}

// Begin starts over with a head, or nothing, in front of the first chunk.
func (c *ChunkWriter) Begin(head []byte) { c.Buf, c.lead, c.open = head, len(head), false }

// Append adds to the chunk.
func (c *ChunkWriter) Append(piece []byte) {
	if !c.open {
		c.open = true
		c.Buf = append(c.Buf, "00000000\r\n"...)
	}
	c.Buf = append(c.Buf, piece...)
}

// Len is the number of bytes in the chunk.
func (c *ChunkWriter) Len() int {
	if !c.open {
		return 0
	}
	return len(c.Buf) - c.lead - chunkLead
}

// Take closes the chunk and returns what is to be written: the head, if it was
// not taken yet, the chunk, and the end if this is the last.
func (c *ChunkWriter) Take(last bool) []byte {
	if c.open {
		c.close()
	}
	if last {
		c.Buf = append(c.Buf, LastChunk...)
	}
	out := c.Buf
	c.Buf, c.lead, c.open = c.Buf[:0], 0, false
	return out
}

// close fills the length in. It keeps leading zeros, which every reader must
// accept, because moving the content would cost more.
func (c *ChunkWriter) close() {
	size := c.Len()
	if size == 0 {
		c.Buf = c.Buf[:c.lead]
		return
	}
	for i := c.lead + maxChunkDigits - 1; i >= c.lead; i-- {
		c.Buf[i] = "0123456789abcdef"[size&15]
		size >>= 4
	}
	c.Buf = append(c.Buf, "\r\n"...)
}
