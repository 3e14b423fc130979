package quarantine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// The header of a bundle is read within these bounds.
const (
	maxHeader        = 64 << 10
	maxPrerequisites = 256
	signature        = "# v2 git bundle\n"
)

// header is what a bundle says of itself.
type header struct {
	Needs []string // commits that the receiver has
	Head  string   // the one commit that it brings
}

// readHeader reads up to the first byte of the pack. A bundle brings exactly one
// commit: there is nothing else that the relay would take.
func readHeader(from *bufio.Reader) (*header, error) {
	left := maxHeader
	first, err := readLine(from, &left)
	if err != nil {
		return nil, err
	}
	if first != signature {
		return nil, errors.New("not a bundle of version 2")
	}
	var h header
	for {
		line, err := readLine(from, &left)
		if err != nil {
			return nil, err
		}
		if line == "\n" {
			return h.check()
		}
		if err := h.parseLine(strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
}

func (h *header) parseLine(line string) error {
	if need, ok := strings.CutPrefix(line, "-"); ok {
		id, _, _ := strings.Cut(need, " ")
		if !git.IsID(id) || len(h.Needs) == maxPrerequisites {
			return errors.New("bad prerequisites")
		}
		h.Needs = append(h.Needs, id)
		return nil
	}
	id, name, ok := strings.Cut(line, " ")
	if !ok || !git.IsID(id) || name == "" {
		return errors.New("bad line in the header")
	}
	if h.Head != "" && h.Head != id {
		return errors.New("more than one head")
	}
	h.Head = id
	return nil
}

func (h *header) check() (*header, error) {
	if h.Head == "" {
		return nil, errors.New("no head")
	}
	return h, nil
}

func readLine(from *bufio.Reader, left *int) (string, error) {
	line, err := from.ReadSlice('\n')
	*left -= len(line)
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || *left < 0:
		return "", fmt.Errorf("header larger than %d bytes", maxHeader)
	case errors.Is(err, io.EOF):
		return "", io.ErrUnexpectedEOF
	}
	return string(line), err
}
