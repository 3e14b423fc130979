package h1

import "bytes"

// Request is the head of a request.
type Request struct {
	Method, Target []byte
	Fields         []Field
	Host           []byte
	Length         int64  // of the body; Chunked: unknown
	Close          bool   // the caller wants no further request on the connection
	Continue       bool   // the caller expects 100 Continue before it sends the body
	Upgrade        []byte // the protocol that the caller asks for; nil if it asks for none
}

// Chunked is the Length of a body in chunks.
const Chunked int64 = -1

// ReadRequest reads the head of the next request into q. io.EOF means that the
// caller closed the connection between requests.
func (r *Reader) ReadRequest(q *Request, p HeadTimeouts) error {
	head, err := r.readHead(p)
	if err != nil {
		return err
	}
	line, rest, err := cutLine(head)
	if err != nil {
		return err
	}
	*q = Request{}
	if err := q.parseLine(line); err != nil {
		return err
	}
	if q.Fields, err = r.parseFields(rest); err != nil {
		return err
	}
	return q.interpret(r.AllowUpgrade)
}

func (q *Request) parseLine(line []byte) error {
	method, rest, ok := bytes.Cut(line, []byte{' '})
	target, version, ok2 := bytes.Cut(rest, []byte{' '})
	if !ok || !ok2 || len(method) == 0 || len(method) > 16 {
		return bad("the request line is not three words")
	}
	for _, c := range method {
		if !isToken(c) {
			return bad("the method holds a character that it may not")
		}
	}
	if string(version) != "HTTP/1.1" {
		return refuse(505, "only HTTP/1.1 is spoken here")
	}
	q.Method, q.Target = method, target
	return checkTarget(target)
}

// checkTarget accepts a path with a query and nothing else: no URL, no "*", no
// host of CONNECT.
func checkTarget(target []byte) error {
	if len(target) == 0 || target[0] != '/' {
		return bad("the target is not a path")
	}
	for i, c := range target {
		if c <= ' ' || c >= 0x7f || c == '#' || c == '"' || c == '<' || c == '>' {
			return bad("the target holds a character that it may not")
		}
		if c == '%' && (i+2 >= len(target) || hexDigit(target[i+1]) > 15 || hexDigit(target[i+2]) > 15) {
			return bad("the target holds a broken escape")
		}
	}
	return nil
}

// interpret reads the fields about the connection and the body.
func (q *Request) interpret(allowUpgrade bool) error {
	f, err := readFraming(q.Fields)
	if err != nil {
		return err
	}
	q.Length, q.Close = max(f.length, 0), f.close
	if f.chunked {
		q.Length = Chunked
	}
	hosts := 0
	for i := range q.Fields {
		switch field := &q.Fields[i]; {
		case field.Is("host"):
			hosts++
			q.Host = field.Value
		case field.Is("upgrade"):
			if !allowUpgrade {
				return refuse(426, "no other protocol is spoken here")
			}
			if q.Upgrade != nil || len(field.Value) == 0 || q.Length != 0 {
				return bad("a request for another protocol names one, once, and has no body")
			}
			q.Upgrade = field.Value
		case field.Is("expect"):
			if !equalFold(field.Value, "100-continue") {
				return refuse(417, "nothing but 100-continue can be expected")
			}
			q.Continue = true
		case field.Is("trailer"):
			return bad("trailers are not accepted")
		}
	}
	if hosts != 1 {
		return bad("there must be exactly one Host")
	}
	return checkHost(q.Host)
}

func checkHost(host []byte) error {
	if len(host) > 255 {
		return bad("Host is too long")
	}
	for _, c := range host {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && bytes.IndexByte([]byte(".-_:[]"), c) < 0 {
			return bad("Host holds a character that it may not")
		}
	}
	return nil
}

// Get returns the value of the first field of that name, given in lower case.
func (q *Request) Get(lower string) []byte { return get(q.Fields, lower) }

func get(fields []Field, lower string) []byte {
	for i := range fields {
		if fields[i].Is(lower) {
			return fields[i].Value
		}
	}
	return nil
}
