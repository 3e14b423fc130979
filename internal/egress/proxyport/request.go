package proxyport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// MaxHead is the most bytes of the head of an HTTP request.
const MaxHead = 16 << 10

// Request is what a program asks of the proxy.
type Request struct {
	Host  string // as it was written: a name, or something to refuse
	Port  int
	Plain bool // a request of HTTP with a whole URL; otherwise a tunnel

	conn   net.Conn
	socks  bool
	before []byte // of a plain request: its head, as a server wants it
	reader *bufio.Reader
}

// Refusal is a request that is not accepted. It was answered.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return r.Reason }

// Read reads a request. A *Refusal was answered already; the connection is to be
// closed after any error.
func Read(conn net.Conn) (*Request, error) {
	r := &Request{conn: conn, reader: bufio.NewReaderSize(conn, MaxHead)}
	first, err := r.reader.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] == socksVersion {
		r.socks = true
		return r, r.readSOCKS()
	}
	return r, r.readHTTP()
}

// Accept answers that the request is granted and returns the bytes that were
// read behind it, or the head of a plain request with them: they go first.
func (r *Request) Accept() (first []byte, err error) {
	switch {
	case r.socks:
		err = r.replySOCKS(socksGranted)
	case !r.Plain:
		_, err = io.WriteString(r.conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	}
	rest := make([]byte, r.reader.Buffered())
	_, _ = io.ReadFull(r.reader, rest)
	return append(r.before, rest...), err
}

// Refuse answers that the rules do not permit the request, and why.
func (r *Request) Refuse(reason string) error { return r.answer(403, socksNotAllowed, reason) }

func (r *Request) answer(status int, reply byte, reason string) error {
	if r.socks {
		return r.replySOCKS(reply)
	}
	return writeRefusal(r.conn, status, reason)
}

// reject answers a request that is not accepted as it is.
func (r *Request) reject(status int, reply byte, format string, args ...any) error {
	reason := fmt.Sprintf(format, args...)
	if err := r.answer(status, reply, reason); err != nil {
		return err
	}
	return &Refusal{reason}
}

// writeRefusal writes an answer of HTTP with a reason for people.
func writeRefusal(w io.Writer, status int, reason string) error {
	_, err := io.WriteString(w, "HTTP/1.1 "+strconv.Itoa(status)+" Refused\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: "+
		strconv.Itoa(len(reason)+1)+"\r\n\r\n"+reason+"\n")
	return err
}

// splitHost separates the port from HOST:PORT. Without one it is the default;
// 0 means that there must be one.
func splitHost(text string, port int) (string, int, error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil && port != 0 {
		return text, port, nil
	}
	if err != nil {
		return "", 0, errors.New("the target is not HOST:PORT")
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
		return "", 0, errors.New("the port is not a number from 1 to 65535")
	}
	if strings.HasPrefix(text, "[") {
		host = "[" + host + "]" // no name has brackets
	}
	return host, int(n), nil
}
