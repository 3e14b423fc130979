package clienthello_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/atoll-run/atoll/internal/egress/clienthello"
)

// hello returns what a client sends first.
func hello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	go func() { _ = tls.Client(client, config).Handshake() }()
	defer client.Close()
	first := make([]byte, 8<<10)
	n, err := server.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	return first[:n]
}

func forName(t testing.TB, name string) []byte {
	return hello(t, &tls.Config{ServerName: name, InsecureSkipVerify: name == ""})
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{"example.com": "example.com", "a.example.com.": "a.example.com", "": "", "192.0.2.7": "", "EXAMPLE.com": "EXAMPLE.com"} {
		raw := forName(t, name)
		got, read, err := clienthello.Read(bytes.NewReader(raw))
		if got != want || err != nil || !bytes.Equal(read, raw) {
			t.Errorf("%q: %q, %v, %d of %d bytes", name, got, err, len(read), len(raw))
		}
	}
}

// What follows the message is read too, and given back.
func TestNothingIsLost(t *testing.T) {
	raw := append(forName(t, "example.com"), "and more"...)
	_, read, err := clienthello.Read(bytes.NewReader(raw))
	if err != nil || !bytes.HasPrefix(raw, read) {
		t.Errorf("%v, %q", err, read)
	}
}

func TestOneByteAtATime(t *testing.T) {
	raw := forName(t, "example.com")
	name, read, err := clienthello.Read(iotest.OneByteReader(bytes.NewReader(raw)))
	if name != "example.com" || err != nil || !bytes.Equal(read, raw) {
		t.Errorf("%q, %v", name, err)
	}
}

// records splits the message of a record over many.
func records(raw []byte, size int) (out []byte) {
	for body := raw[5:]; len(body) > 0; {
		n := min(size, len(body))
		out = append(out, raw[0], raw[1], raw[2], byte(n>>8), byte(n))
		out = append(out, body[:n]...)
		body = body[n:]
	}
	return out
}

func TestManyRecords(t *testing.T) {
	raw := records(forName(t, "example.com"), 7)
	if name, read, err := clienthello.Read(bytes.NewReader(raw)); name != "example.com" || err != nil || !bytes.Equal(read, raw) {
		t.Errorf("%q, %v", name, err)
	}
}

func TestOldVersion(t *testing.T) {
	raw := hello(t, &tls.Config{ServerName: "example.com", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10})
	if name, _, err := clienthello.Read(bytes.NewReader(raw)); name != "example.com" || err != nil {
		t.Errorf("%q, %v", name, err)
	}
}

// names makes the server_name extension of a message hold other bytes of the same
// length.
func names(t *testing.T, replacement string) []byte {
	t.Helper()
	placeholder := strings.Repeat("a", len(replacement)-4) + ".com"
	raw := forName(t, placeholder)
	if !bytes.Contains(raw, []byte(placeholder)) {
		t.Fatal("the name is not in the message")
	}
	return bytes.Replace(raw, []byte(placeholder), []byte(replacement), 1)
}

func TestOddNames(t *testing.T) {
	for _, odd := range []string{"evil.example\x00.com", "example.com."} {
		raw := names(t, odd)
		name, _, err := clienthello.Read(bytes.NewReader(raw))
		if err == nil && name != odd {
			t.Errorf("%q was read as %q", odd, name)
		}
	}
}

func TestWhatIsNotTLS(t *testing.T) {
	for _, text := range []string{"SSH-2.0-OpenSSH_9.9\r\n", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "\x16\x03\x01\x00\x05hello", "\x80\x2e\x01\x00\x02", "\x15\x03\x01\x00\x02\x02\x28"} {
		name, read, err := clienthello.Read(strings.NewReader(text + strings.Repeat(" ", 32)))
		if !errors.Is(err, clienthello.ErrNotTLS) || name != "" || len(read) == 0 {
			t.Errorf("%q: %q, %v", text, name, err)
		}
	}
	if _, _, err := clienthello.Read(strings.NewReader("\x16\x03\x01")); !errors.Is(err, io.EOF) {
		t.Errorf("cut off: %v", err)
	}
}

// endless is a message that announces the most and comes in the smallest records.
func endless() io.Reader {
	first := []byte{22, 3, 1, 0, 4, 1, 0, 0xff, 0xff}
	return io.MultiReader(bytes.NewReader(first), &forever{record: []byte{22, 3, 1, 0, 1, 0}})
}

type forever struct {
	record []byte
	at     int
}

func (f *forever) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = f.record[f.at%len(f.record)]
		f.at++
	}
	return len(b), nil
}

func TestNeverFinished(t *testing.T) {
	_, read, err := clienthello.Read(endless())
	if err == nil || len(read) > clienthello.MaxBytes+64<<10 {
		t.Errorf("%v after %d bytes", err, len(read))
	}
}

// FuzzRead holds that a name is only taken from what crypto/tls accepts, and that
// every byte that was read is given back.
func FuzzRead(f *testing.F) {
	f.Add(forName(f, "example.com"))
	f.Add(records(forName(f, "a.example"), 40))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		name, read, err := clienthello.Read(bytes.NewReader(raw))
		if !bytes.HasPrefix(raw, read) || err != nil && name != "" {
			t.Fatalf("%q, %v, %d of %d bytes", name, err, len(read), len(raw))
		}
	})
}
