// Package rfb carries VNC (RFC 6143) between the screen of a browser in a sandbox and a
// person who watches it. It reads both directions message by message: what it does not
// know ends the connection, what a person who only watches types does not arrive, and what
// the screen says beside pictures is left out.
package rfb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
)

const (
	// MaxSide bounds the width and the height of a screen.
	MaxSide = 8192
	// MaxCutText is the longest text that a person pastes, and that a screen may say.
	MaxCutText = 64 << 10
	// maxCursor bounds the sides of the mouse's picture.
	maxCursor = 512
	// maxEncodings is how many encodings a viewer may name.
	maxEncodings = 256
	// maxName bounds what is read, and maxShownName what is shown of a screen's name.
	maxName, maxShownName = 4096, 64
	// maxPressed is how many keys are down at once.
	maxPressed = 32
)

// version is the one version of the protocol that is spoken.
const version = "RFB 003.008\n"

// securityNone is the RFB security type None, which has no authentication: only the wire
// reaches the VNC server, and the gateway has authenticated the viewer.
const securityNone = 1

// ErrProtocol is returned for what is no VNC, or none that is let through.
var ErrProtocol = errors.New("not VNC as it is let through")

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Relay carries VNC between a screen and a viewer. Handshake comes first; FromScreen and
// FromViewer then run at the same time.
type Relay struct {
	Screen io.ReadWriter
	// Viewer is read by FromViewer and written to by FromScreen.
	Viewer io.ReadWriter
	// Drives reports whether what the viewer types and clicks may arrive. FromViewer asks
	// it for every message.
	Drives func() bool

	width, height int          // of the screen; used by FromScreen
	pixel         atomic.Int32 // bytes of a pixel
	asked         bool         // for a picture; used by FromViewer
	held          held         // used by FromViewer
}

// Handshake opens both sides. The screen's name is cleaned: it is the sandbox's text.
func (r *Relay) Handshake() error {
	start, err := r.openScreen()
	if err != nil {
		return fmt.Errorf("the screen: %w", err)
	}
	if err := r.openViewer(); err != nil {
		return fmt.Errorf("the viewer: %w", err)
	}
	_, err = r.Viewer.Write(start)
	return err
}

// openScreen opens the screen's side and returns what it begins with: its size, the form
// of its pixels and its name.
func (r *Relay) openScreen() ([]byte, error) {
	greeting, err := read(r.Screen, len(version))
	if err != nil || string(greeting) != version {
		return nil, firstError(err, protocolError("it begins with %.12q", greeting))
	}
	if _, err := io.WriteString(r.Screen, version); err != nil {
		return nil, err
	}
	if err := r.chooseNone(); err != nil {
		return nil, err
	}
	if _, err := r.Screen.Write([]byte{1}); err != nil { // others may watch too
		return nil, err
	}
	start, err := read(r.Screen, 24)
	if err != nil {
		return nil, err
	}
	if err := r.resize(int(binary.BigEndian.Uint16(start)), int(binary.BigEndian.Uint16(start[2:]))); err != nil {
		return nil, err
	}
	pixel, err := bytesOfPixel(start[4:])
	if err != nil {
		return nil, err
	}
	r.pixel.Store(pixel)
	name, err := readText(r.Screen, start[20:], maxName)
	if err != nil {
		return nil, err
	}
	shown := cleanName(string(name))
	start = binary.BigEndian.AppendUint32(start[:20], uint32(len(shown)))
	return append(start, shown...), nil
}

// chooseNone selects the security type None; a server that does not offer it is refused.
func (r *Relay) chooseNone() error {
	count, err := read(r.Screen, 1)
	if err != nil {
		return err
	}
	kinds, err := read(r.Screen, int(count[0]))
	if err != nil || !strings.ContainsRune(string(kinds), securityNone) {
		return firstError(err, protocolError("it wants a password"))
	}
	if _, err := r.Screen.Write([]byte{securityNone}); err != nil {
		return err
	}
	result, err := read(r.Screen, 4)
	if err != nil || binary.BigEndian.Uint32(result) != 0 {
		return firstError(err, protocolError("it refuses the connection"))
	}
	return nil
}

// openViewer opens the viewer's side.
func (r *Relay) openViewer() error {
	for _, step := range []struct{ say, hear string }{{version, version}, {"\x01\x01", "\x01"}} {
		if _, err := io.WriteString(r.Viewer, step.say); err != nil {
			return err
		}
		heard, err := read(r.Viewer, len(step.hear))
		if err != nil || string(heard) != step.hear {
			return firstError(err, protocolError("it answers %.12q", heard))
		}
	}
	if _, err := r.Viewer.Write([]byte{0, 0, 0, 0}); err != nil {
		return err
	}
	_, err := read(r.Viewer, 1) // whether others may watch too: they may
	return err
}

// resize takes the size of the screen.
func (r *Relay) resize(width, height int) error {
	if width < 1 || height < 1 || width > MaxSide || height > MaxSide {
		return protocolError("a screen of %d × %d", width, height)
	}
	r.width, r.height = width, height
	return nil
}

// bytesOfPixel reads the form of pixels: of 8, 16 or 32 bits, with colours in them.
func bytesOfPixel(form []byte) (int32, error) {
	bits, hasColours := form[0], form[3]
	if bits != 8 && bits != 16 && bits != 32 || hasColours != 1 {
		return 0, protocolError("pixels of %d bits", bits)
	}
	return int32(bits / 8), nil
}

// cleanName returns what is shown of a screen's name.
func cleanName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
	return clean[:min(len(clean), maxShownName)]
}

// read reads so many bytes.
func read(from io.Reader, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(from, b)
	return b, err
}

// readText reads a text of at most so many bytes, whose length was read.
func readText(from io.Reader, length []byte, most uint32) ([]byte, error) {
	n := binary.BigEndian.Uint32(length)
	if n > most {
		return nil, protocolError("a text of %d bytes", n)
	}
	return read(from, int(n))
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
