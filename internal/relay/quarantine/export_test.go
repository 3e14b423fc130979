package quarantine

import (
	"bufio"
	"bytes"
)

// ReadHeader reads the header of a bundle and returns its head.
func ReadHeader(data []byte) (string, error) {
	h, err := readHeader(bufio.NewReaderSize(bytes.NewReader(data), maxHeader))
	if err != nil {
		return "", err
	}
	return h.Head, nil
}
