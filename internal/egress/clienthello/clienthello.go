// Package clienthello reads the first message of a TLS client with crypto/tls,
// without answering it.
package clienthello

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"
)

// MaxBytes is the most that is read: crypto/tls takes messages of up to 64 KiB,
// and records may be small.
const MaxBytes = 128 << 10

var (
	// ErrNotTLS is a connection that begins with something else.
	ErrNotTLS = errors.New("the connection does not begin with a TLS ClientHello")
	// ErrTooLong is a first message beyond MaxBytes.
	ErrTooLong = errors.New("the TLS ClientHello is too long")

	errRead = errors.New("the ClientHello was read")
)

// Read reads the first message and returns the name of the server in it (SNI), ""
// if there is none. read has all bytes that were taken from r, also if there is an
// error. Of a message with an encrypted one inside (ECH) it is the outer name.
func Read(r io.Reader) (name string, read []byte, err error) {
	conn := &recorder{from: r}
	config := &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name = info.ServerName
		return nil, errRead
	}}
	err = tls.Server(conn, config).HandshakeContext(context.Background())
	switch {
	case errors.Is(err, errRead):
		return name, conn.read.Bytes(), nil
	case conn.failed != nil:
		return "", conn.read.Bytes(), conn.failed
	}
	return "", conn.read.Bytes(), ErrNotTLS
}

// recorder is a connection that keeps what is read and writes nothing.
type recorder struct {
	from   io.Reader
	read   bytes.Buffer
	failed error
}

func (c *recorder) Read(b []byte) (int, error) {
	if c.read.Len() >= MaxBytes {
		c.failed = ErrTooLong
		return 0, c.failed
	}
	n, err := c.from.Read(b)
	c.read.Write(b[:n])
	if err != nil {
		c.failed = err
	}
	return n, err
}

// Write drops the alert that crypto/tls sends when a handshake is given up.
func (c *recorder) Write(b []byte) (int, error) { return len(b), nil }

func (c *recorder) Close() error                     { return nil }
func (c *recorder) LocalAddr() net.Addr              { return nil }
func (c *recorder) RemoteAddr() net.Addr             { return nil }
func (c *recorder) SetDeadline(time.Time) error      { return nil }
func (c *recorder) SetReadDeadline(time.Time) error  { return nil }
func (c *recorder) SetWriteDeadline(time.Time) error { return nil }
