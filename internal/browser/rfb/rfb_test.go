package rfb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// end is one end of a connection whose other end is a text that was said already.
type end struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (e *end) Read(b []byte) (int, error)  { return e.in.Read(b) }
func (e *end) Write(b []byte) (int, error) { return e.out.Write(b) }

func says(texts ...string) *end { return &end{in: bytes.NewReader([]byte(strings.Join(texts, "")))} }

// pixels is a form of pixels of 32 bits.
const pixels = "\x20\x18\x00\x01\x00\xff\x00\xff\x00\xff\x10\x08\x00\x00\x00\x00"

// greeting is what a screen begins with: 4 × 2 pixels, and a name with an escape.
const greeting = version + "\x01\x01" + "\x00\x00\x00\x00" + "\x00\x04\x00\x02" + pixels + "\x00\x00\x00\x07\x1b]0;hi\x07"

// newRelay returns a relay with a screen of 4 × 2 pixels.
func newRelay(screen, viewer *end, drives bool) *Relay {
	r := &Relay{Screen: screen, Viewer: viewer, Drives: func() bool { return drives }, width: 4, height: 2}
	r.pixel.Store(4)
	return r
}

// TestHandshake checks both beginnings, and that the name is cleaned (attack 22).
func TestHandshake(t *testing.T) {
	screen, viewer := says(greeting), says(version, "\x01", "\x01")
	r := newRelay(screen, viewer, false)
	if err := r.Handshake(); err != nil {
		t.Fatal(err)
	}
	if want := version + "\x01" + "\x01"; screen.out.String() != want {
		t.Errorf("the screen heard %q", &screen.out)
	}
	if want := version + "\x01\x01" + "\x00\x00\x00\x00" + "\x00\x04\x00\x02" + pixels + "\x00\x00\x00\x05]0;hi"; viewer.out.String() != want {
		t.Errorf("the viewer heard %q", &viewer.out)
	}
	for name, c := range map[string]struct{ screen, viewer string }{
		"an older version":     {strings.Replace(greeting, "008", "003", 1), version},
		"a password":           {version + "\x01\x02", ""},
		"nobody":               {version + "\x01\x01" + "\x00\x00\x00\x01", ""},
		"a huge screen":        {strings.Replace(greeting, "\x00\x04\x00\x02", "\xff\xff\xff\xff", 1), ""},
		"no pixels":            {strings.Replace(greeting, "\x20\x18", "\x18\x18", 1), ""},
		"a long name":          {greeting[:len(greeting)-11] + "\x7f\xff\xff\xff", ""},
		"a viewer's version":   {greeting, "RFB 003.003\n"},
		"a viewer's security":  {greeting, version + "\x02"},
		"what is no VNC":       {"HTTP/1.1 400\r\n\r\n", ""},
		"a screen that leaves": {version, ""},
	} {
		if err := newRelay(says(c.screen), says(c.viewer), false).Handshake(); err == nil {
			t.Errorf("%s was let through", name)
		}
	}
}

// The messages of a viewer.
const (
	key     = "\x04\x01\x00\x00\x00\x00\x00a"
	keyUp   = "\x04\x00\x00\x00\x00\x00\x00a"
	click   = "\x05\x01\x00\x02\x00\x01"
	paste   = "\x06\x00\x00\x00\x00\x00\x00\x02hi"
	request = "\x03\x00\x00\x00\x00\x00\x00\x04\x00\x02"
)

// TestAttackBrowser22_ViewOnly: what a viewer types, clicks and pastes arrives while it
// drives, and only then.
func TestAttackBrowser22_ViewOnly(t *testing.T) {
	for drives, want := range map[bool]string{false: request, true: key + click + paste + request} {
		screen := says()
		if err := newRelay(screen, says(key, click, paste, request), drives).FromViewer(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		if screen.out.String() != want {
			t.Errorf("drives %t: the screen heard %q", drives, &screen.out)
		}
	}
	for name, bad := range map[string]string{
		"a kind that is not known": "\x07", "continuous updates": "\x96\x01\x00\x00\x00\x00\x00\x00\x00\x00", "a new size": "\xfb\x00", "a key with a scan code": "\xff\x00",
		"an endless text": "\x06\x00\x00\x00\xff\xff\xff\xff", "a long text": "\x06\x00\x00\x00\x00\x01\x00\x01", "many encodings": "\x02\x00\xff\xff",
		"pixels of 24 bits": "\x00\x00\x00\x00\x18\x18\x00\x01" + pixels[4:], "pixels that change": request + "\x00\x00\x00\x00\x08\x08\x00\x01" + pixels[4:],
		"many keys": manyKeys(),
	} {
		screen := says()
		if err := newRelay(screen, says(bad, key), true).FromViewer(); !errors.Is(err, ErrProtocol) || strings.HasSuffix(screen.out.String(), key) {
			t.Errorf("%s: %v, %q", name, err, &screen.out)
		}
	}
}

func manyKeys() string {
	var all []byte
	for i := range uint32(maxPressed + 1) {
		all = binary.BigEndian.AppendUint32(append(all, keyEvent, 1, 0, 0), i)
	}
	return string(all)
}

// TestEncodings checks that a screen is asked for what can be read, in the viewer's order.
func TestEncodings(t *testing.T) {
	screen := says()
	tight, extended := "\x00\x00\x00\x07", "\xff\xff\xfe\xcc"
	if err := newRelay(screen, says("\x02\x00\x00\x05", tight, "\x00\x00\x00\x10", extended, "\x00\x00\x00\x00", "\xff\xff\xff\x21"), false).FromViewer(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if want := "\x02\x00\x00\x03\x00\x00\x00\x10\x00\x00\x00\x00\xff\xff\xff\x21"; screen.out.String() != want {
		t.Errorf("%q", &screen.out)
	}
}

// TestLetGo checks that nothing stays pressed when a viewer drives no more.
func TestLetGo(t *testing.T) {
	screen := says()
	r := newRelay(screen, says(key, "\x04\x01\x00\x00\x00\x00\x00b", "\x04\x00\x00\x00\x00\x00\x00b", click), true)
	if err := r.FromViewer(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	screen.out.Reset()
	for _, want := range []string{keyUp + "\x05\x00\x00\x02\x00\x01", ""} {
		if err := r.LetGo(); err != nil || screen.out.String() != want {
			t.Errorf("%q, %v", &screen.out, err)
		}
		screen.out.Reset()
	}
}

// rect returns the head of a rectangle.
func rect(x, y, width, height uint16, encoding int32) string {
	var b []byte
	for _, n := range []uint16{x, y, width, height} {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return string(binary.BigEndian.AppendUint32(b, uint32(encoding)))
}

// TestAttackBrowser22_Screen: pictures arrive, what else a screen says does not, and
// absurd ones end the connection.
func TestAttackBrowser22_Screen(t *testing.T) {
	picture := "\x00\x00\x00\x04" + rect(0, 0, 1, 1, raw) + "rgbx" + rect(1, 1, 2, 1, copyRect) + "\x00\x00\x00\x00" +
		rect(0, 0, 4, 2, zrle) + "\x00\x00\x00\x03abc" + rect(0, 0, 8, 1, cursor) + strings.Repeat("p", 32) + "m"
	larger := "\x00\x00\x00\x02" + rect(0, 0, 5, 3, desktopSize) + rect(4, 2, 1, 1, raw) + "rgbx"
	viewer := says()
	if err := newRelay(says("\x03\x00\x00\x00\x00\x00\x00\x06secret", picture, "\x02", larger), viewer, false).FromScreen(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if viewer.out.String() != picture+larger {
		t.Errorf("%q", &viewer.out)
	}
	for name, bad := range map[string]string{
		"colours": "\x01\x00", "a fence": "\xf8\x00", "an endless text": "\x03\x00\x00\x00\xff\xff\xff\xff", "a picture without an end": "\x00\x00\xff\xff",
		"outside": "\x00\x00\x00\x01" + rect(4, 0, 1, 1, raw), "far outside": "\x00\x00\x00\x01" + rect(65535, 65535, 65535, 65535, zrle),
		"copied from outside": "\x00\x00\x00\x01" + rect(0, 0, 2, 1, copyRect) + "\x00\x03\x00\x00", "not asked for": "\x00\x00\x00\x01" + rect(0, 0, 1, 1, 7),
		"a long rectangle": "\x00\x00\x00\x01" + rect(0, 0, 4, 2, zrle) + "\xff\xff\xff\xff", "a huge screen": "\x00\x00\x00\x01" + rect(0, 0, 9000, 1, desktopSize),
		"no screen": "\x00\x00\x00\x01" + rect(0, 0, 0, 0, desktopSize), "a huge mouse": "\x00\x00\x00\x01" + rect(0, 0, 600, 1, cursor),
		"the same again and again": "\x00\x00\xff\xfe" + strings.Repeat(rect(0, 0, 512, 512, cursor)+strings.Repeat("p", 512*512*4+512*64), 2),
	} {
		if err := newRelay(says(bad), says(), false).FromScreen(); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzScreen checks that a screen can say nothing that makes the relay fail otherwise than
// with an error, or send more than it got.
func FuzzScreen(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x01" + rect(0, 0, 4, 2, zrle) + "\x00\x00\x00\x03abc"))
	f.Add([]byte("\x03\x00\x00\x00\x00\x00\x00\x01x\x02"))
	f.Fuzz(func(t *testing.T, said []byte) {
		viewer := says()
		if err := newRelay(says(string(said)), viewer, false).FromScreen(); err == nil || viewer.out.Len() > len(said) {
			t.Errorf("%v: %d of %d bytes", err, viewer.out.Len(), len(said))
		}
	})
}

// FuzzViewer checks that a viewer who does not drive gets nothing but questions for
// pictures through.
func FuzzViewer(f *testing.F) {
	f.Add([]byte(key + click + paste + request))
	f.Fuzz(func(t *testing.T, said []byte) {
		screen := says()
		if err := newRelay(screen, says(string(said)), false).FromViewer(); err == nil {
			t.Error("no end")
		}
		for heard := screen.out.Bytes(); len(heard) > 0; {
			switch heard[0] {
			case setPixelFormat:
				heard = heard[20:]
			case setEncodings:
				heard = heard[4+4*int(binary.BigEndian.Uint16(heard[2:])):]
			case askUpdate:
				heard = heard[10:]
			default:
				t.Fatalf("%q arrived", heard)
			}
		}
	})
}
