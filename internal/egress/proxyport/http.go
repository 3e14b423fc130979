package proxyport

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// readHTTP reads the head of a request: CONNECT, or one with a whole URL.
func (r *Request) readHTTP() error {
	head, err := r.readHead()
	if err != nil {
		return err
	}
	line, fields, _ := strings.Cut(head, "\r\n")
	words := strings.Split(line, " ")
	if len(words) != 3 || words[0] == "" || !strings.HasPrefix(words[2], "HTTP/1.") {
		return r.reject(400, 0, "the request line is not one of HTTP/1.1")
	}
	if words[0] == "CONNECT" {
		r.Host, r.Port, err = splitHost(words[1], 0)
	} else {
		err = r.readURL(words[0], words[1], fields)
	}
	if err != nil {
		return r.reject(400, 0, "%v", err)
	}
	return nil
}

// readHead returns the head up to its empty line, without control characters
// other than the ends of lines.
func (r *Request) readHead() (string, error) {
	for seen := 0; ; {
		buffered, err := r.reader.Peek(max(seen+1, r.reader.Buffered()))
		if end := bytes.Index(buffered, []byte("\r\n\r\n")); end >= 0 {
			head := string(buffered[:end+2])
			_, _ = r.reader.Discard(end + 4)
			return head, r.checkHead(head)
		}
		if len(buffered) >= MaxHead {
			return "", r.reject(431, 0, "the head of the request is larger than %d bytes", MaxHead)
		}
		if errors.Is(err, io.EOF) {
			return "", io.ErrUnexpectedEOF
		}
		if err != nil {
			return "", err
		}
		seen = len(buffered)
	}
}

func (r *Request) checkHead(head string) error {
	lines := strings.ReplaceAll(head, "\r\n", "")
	if strings.ContainsFunc(lines, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
		return r.reject(400, 0, "the head of the request has a control character")
	}
	return nil
}

// readURL reads the target of a request that is not CONNECT, and writes the head
// that a server is sent: with the path alone, and for this request only.
func (r *Request) readURL(method, target, fields string) error {
	rest, ok := cutPrefixFold(target, "http://")
	if !ok {
		return errors.New("this is a proxy: it takes CONNECT, SOCKS5, and requests for http:// URLs")
	}
	authority, path := rest, "/"
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, path = rest[:end], rest[end:]
	}
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	var err error
	if r.Host, r.Port, err = splitHost(authority, 80); err != nil {
		return err
	}
	r.Plain = true
	r.before = []byte(method + " " + path + " HTTP/1.1\r\n" + withoutProxyFields(fields) + "Connection: close\r\n\r\n")
	return nil
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// withoutProxyFields removes the fields that are for the proxy.
func withoutProxyFields(fields string) string {
	var kept strings.Builder
	for line := range strings.SplitAfterSeq(fields, "\r\n") {
		name, _, _ := strings.Cut(line, ":")
		switch strings.ToLower(name) {
		case "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te":
		default:
			kept.WriteString(line)
		}
	}
	return kept.String()
}
