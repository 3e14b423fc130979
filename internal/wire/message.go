package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Request reads the first message of a stream.
func (r *Reader) Request() (*Request, error) {
	var parts requestParts
	if err := readMessage(r.buffered, &parts, MaxRequest); err != nil {
		return nil, err
	}
	req, err := parts.join()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return req, nil
}

// readMessage reads a length and a JSON object. It reads nothing beyond it.
func readMessage(r io.Reader, v any, limit uint32) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return noEOF(err)
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > limit {
		return fmt.Errorf("%w: message of %d bytes is over the limit of %d", ErrProtocol, n, limit)
	}
	payload, err := readSized(r, nil, int(n))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// WriteRequest writes the first message of a stream.
func WriteRequest(w io.Writer, req *Request) error {
	parts, err := req.split()
	if err != nil {
		return err
	}
	return writeMessage(w, parts, MaxRequest)
}

func writeMessage(w io.Writer, v any, limit int) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writePayload(w, payload, limit)
}

// writePayload writes a JSON object and its length in one write.
func writePayload(w io.Writer, payload []byte, limit int) error {
	if len(payload) > limit {
		return Fail(CodeInvalid, fmt.Sprintf("request of %d bytes is over the limit of %d", len(payload), limit))
	}
	buf := make([]byte, 4, 4+len(payload))
	binary.BigEndian.PutUint32(buf, uint32(len(payload)))
	_, err := w.Write(append(buf, payload...))
	return err
}
