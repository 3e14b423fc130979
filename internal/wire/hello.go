package wire

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"time"
)

// magic opens each side's greeting, so that a wrong socket is noticed at once.
const magic = "atoll\x00\r\n"

// Kind says what a wire is for.
type Kind string

// The kinds of wire.
const (
	KindControl Kind = "control"
	KindBulk    Kind = "bulk"
	KindDirect  Kind = "direct" // not multiplexed: see Direct
	KindOnce    Kind = "once"   // for one command: see OpenOnce
)

// Hello is the host's greeting.
type Hello struct {
	Min    int    `json:"min"`
	Max    int    `json:"max"`
	Client string `json:"client"`
	Epoch  uint64 `json:"epoch"`
	Kind   Kind   `json:"kind"`
	Token  string `json:"token,omitempty"` // of a direct wire: what Direct gave
}

// Welcome is the guest's answer.
type Welcome struct {
	Version int    `json:"version,omitempty"`
	Boot    string `json:"boot,omitempty"` // names this life of the guest
	Build   string `json:"build,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

func (h *Hello) check() error {
	switch {
	case h.Min < 1 || h.Max < h.Min:
		return fmt.Errorf("%w: hello with versions %d to %d", ErrProtocol, h.Min, h.Max)
	case !ValidID(h.Client):
		return fmt.Errorf("%w: hello with a malformed client name", ErrProtocol)
	case h.Kind == KindDirect && !ValidID(h.Token):
		return fmt.Errorf("%w: hello with a malformed token", ErrProtocol)
	case h.Kind != KindControl && h.Kind != KindBulk && h.Kind != KindDirect && h.Kind != KindOnce:
		return fmt.Errorf("%w: hello for an unknown kind of wire", ErrProtocol)
	}
	return nil
}

// Handshake performs the host's side of the handshake. A refusal is an *Error.
func Handshake(conn net.Conn, hello *Hello) (*Welcome, error) {
	_ = conn.SetDeadline(time.Now().Add(HelloTimeout))
	if err := writeHandshake(conn, hello); err != nil {
		return nil, err
	}
	var welcome Welcome
	if err := readHandshake(conn, &welcome); err != nil {
		return nil, err
	}
	if welcome.Error != nil {
		return nil, Fail(welcome.Error.Code, welcome.Error.Message)
	}
	if welcome.Version < hello.Min || welcome.Version > hello.Max || !ValidID(welcome.Boot) {
		return nil, fmt.Errorf("%w: welcome with version %d", ErrProtocol, welcome.Version)
	}
	welcome.Build = Printable(welcome.Build)
	return &welcome, conn.SetDeadline(time.Time{})
}

// ReadHello reads the host's greeting. The guest answers with Answer.
func ReadHello(conn net.Conn) (*Hello, error) {
	_ = conn.SetDeadline(time.Now().Add(HelloTimeout))
	var hello Hello
	if err := readHandshake(conn, &hello); err != nil {
		return nil, err
	}
	return &hello, hello.check()
}

// WriteWelcome ends the guest's side of the handshake.
func WriteWelcome(conn net.Conn, welcome *Welcome) error {
	if err := writeHandshake(conn, welcome); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// Negotiate picks the version to speak, or 0 if there is none in common.
func Negotiate(hello *Hello) int {
	version := min(hello.Max, MaxVersion)
	if version < max(hello.Min, MinVersion) {
		return 0
	}
	return version
}

func writeHandshake(w io.Writer, v any) error {
	var buf bytes.Buffer
	buf.WriteString(magic)
	if err := writeMessage(&buf, v, MaxHello); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// readHandshake reads nothing beyond the greeting: what follows belongs to the
// session.
func readHandshake(r io.Reader, v any) error {
	var got [len(magic)]byte
	if _, err := io.ReadFull(r, got[:]); err != nil {
		return noEOF(err)
	}
	if string(got[:]) != magic {
		return fmt.Errorf("%w: the peer is not an Atoll guest or host", ErrProtocol)
	}
	return readMessage(r, v, MaxHello)
}

// ValidID reports whether s can name a client, a boot or a process.
func ValidID(s string) bool {
	if s == "" || len(s) > MaxID {
		return false
	}
	for _, c := range []byte(s) {
		ok := c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !ok {
			return false
		}
	}
	return true
}
