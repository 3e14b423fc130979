package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// magic begins each side's handshake, so that a wrong socket is noticed at once.
const magic = "atoll\x00\r\n"

// Kind is the purpose of a connection.
type Kind string

// The kinds of wire.
const (
	KindControl Kind = "control"
	KindBulk    Kind = "bulk"
	KindDirect  Kind = "direct" // not multiplexed: see Direct and OpenDirect
)

// Hello is the host's part of the handshake.
type Hello struct {
	Min    int    `json:"min"`
	Max    int    `json:"max"`
	Client string `json:"client"`
	Epoch  uint64 `json:"epoch"`
	Kind   Kind   `json:"kind"`
	// Fence is the epoch of the gateway that owns the sandbox, over all clients; 0 where
	// nothing else keeps one owner apart from the next.
	Fence uint64 `json:"fence,omitempty"`
	// Token is what Direct gave, for a direct connection that belongs to a wire;
	// "" is one without a parent.
	Token string `json:"token,omitempty"`
	// Features are those of the host.
	Features Features `json:"features,omitempty"`
	// Needs are the features without which the guest refuses the connection:
	// those of a request that comes with the hello.
	Needs Features `json:"needs,omitempty"`
}

// Welcome is the guest's part of the handshake.
type Welcome struct {
	Version int    `json:"version,omitempty"`
	Boot    string `json:"boot,omitempty"` // names this boot of the guest
	Build   string `json:"build,omitempty"`
	// Features are those of the guest that the host announced, too. A guest that
	// was built before features had names sends none, and has those of its version.
	Features Features `json:"features,omitempty"`
	Error    *Error   `json:"error,omitempty"`
}

func (h *Hello) check() error {
	switch {
	case h.Min < 1 || h.Max < h.Min:
		return fmt.Errorf("%w: hello with versions %d to %d", ErrProtocol, h.Min, h.Max)
	case !ValidID(h.Client):
		return fmt.Errorf("%w: hello with a malformed client name", ErrProtocol)
	case h.Kind == KindDirect && h.Token != "" && !ValidID(h.Token):
		return fmt.Errorf("%w: hello with a malformed token", ErrProtocol)
	case h.Kind != KindControl && h.Kind != KindBulk && h.Kind != KindDirect:
		return fmt.Errorf("%w: hello for an unknown kind of wire", ErrProtocol)
	}
	return errors.Join(h.Features.check(), h.Needs.check())
}

// NewHello returns the hello of this build for one kind of wire.
func NewHello(kind Kind, client string, epoch uint64) *Hello {
	return &Hello{Min: MinVersion, Max: MaxVersion, Client: client, Epoch: epoch, Kind: kind, Features: AllFeatures()}
}

// Handshake performs the host's side of the handshake. A refusal is an *Error.
func Handshake(conn net.Conn, hello *Hello) (*Welcome, error) {
	_ = conn.SetDeadline(time.Now().Add(HelloTimeout))
	if err := writeHandshake(conn, hello); err != nil {
		return nil, err
	}
	return ReadWelcome(conn, hello)
}

// OpenDirect sends the hello of a direct connection without a parent together
// with its first request, in one write. The guest answers with its welcome
// (ReadWelcome) and then with the frames of the request. A guest that ignored a
// part of the request would misunderstand it, so the hello names what it needs.
func OpenDirect(w io.Writer, hello *Hello, req *Request) error {
	first := *hello
	first.Needs = append(req.Needs(), FeatureFirstRequest)
	var buf bytes.Buffer
	if err := errors.Join(writeHandshake(&buf, &first), WriteRequest(&buf, req)); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// ReadWelcome reads the guest's answer to a hello. A refusal is an *Error.
func ReadWelcome(conn net.Conn, hello *Hello) (*Welcome, error) {
	_ = conn.SetDeadline(time.Now().Add(HelloTimeout))
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
	if err := welcome.Features.check(); err != nil {
		return nil, err
	}
	if welcome.Features == nil {
		welcome.Features = versionFeatures(welcome.Version)
	}
	welcome.Build = Printable(welcome.Build)
	return &welcome, conn.SetDeadline(time.Time{})
}

// ReadHello reads the host's hello. The guest answers with WriteWelcome.
func ReadHello(conn net.Conn) (*Hello, error) {
	_ = conn.SetDeadline(time.Now().Add(HelloTimeout))
	var hello Hello
	if err := readHandshake(conn, &hello); err != nil {
		return nil, err
	}
	return &hello, hello.check()
}

// WriteWelcome completes the guest's side of the handshake.
func WriteWelcome(conn net.Conn, welcome *Welcome) error {
	if err := writeHandshake(conn, welcome); err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// Accept completes the guest's welcome to a hello: the version to speak and the
// features of both sides. An *Error refuses a host that speaks no common
// version, or needs a feature that this guest does not have.
func (w *Welcome) Accept(hello *Hello) *Error {
	if w.Version = Negotiate(hello); w.Version == 0 {
		return Fail(CodeVersion, "the guest speaks another version of the protocol")
	}
	if missing := AllFeatures().Missing(hello.Needs); len(missing) > 0 {
		return Fail(CodeNoFeature, fmt.Sprintf("the guest does not have the feature %q", missing[0]))
	}
	w.Features = AllFeatures().Common(hello.Features)
	return nil
}

// Negotiate returns the version to speak, or 0 if there is none in common.
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

// readHandshake reads nothing beyond the message: what follows are frames.
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
