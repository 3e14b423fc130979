package dns

import (
	"encoding/binary"
	"errors"
	"io"
)

// ReadMessage reads one message of a TCP connection, with its length in front.
func ReadMessage(r io.Reader) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(length[:]))
	if n > MaxMessage {
		return nil, errors.New("the message is too long")
	}
	message := make([]byte, n)
	_, err := io.ReadFull(r, message)
	return message, err
}

// WriteMessage writes one message with its length in front.
func WriteMessage(w io.Writer, message []byte) error {
	framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(message)), uint16(len(message)))
	_, err := w.Write(append(framed, message...))
	return err
}
