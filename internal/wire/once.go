package wire

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"unicode/utf8"
)

// OpenOnce greets and asks for a command in one message. The guest does not
// answer the greeting: what follows are the frames of the command, Started first,
// or an Error. A guest that ignored a part of the request would misunderstand it,
// so none but one of this version is spoken to.
func OpenOnce(w io.Writer, client string, e *Exec) error {
	buf := bytes.NewBuffer(appendHelloOnce(nil, client))
	if err := writeExec(buf, e); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// appendHelloOnce is written by hand, as is most of writeExec: package json takes
// its time for the first value of every type, and whoever opens such a wire
// writes one value, and ends.
func appendHelloOnce(b []byte, client string) []byte {
	b = append(b, magic...)
	at := len(b)
	b = strconv.AppendInt(append(b, "\x00\x00\x00\x00"+`{"min":`...), MaxVersion, 10)
	b = strconv.AppendInt(append(b, `,"max":`...), MaxVersion, 10)
	b = appendText(append(b, `,"epoch":0,"kind":"`+KindOnce+`","client":`...), client)
	return putSize(append(b, '}'), at)
}

// putSize puts how much follows into the four bytes at an offset.
func putSize(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// writeExec writes the request for a command.
func writeExec(w io.Writer, e *Exec) error {
	if b, ok := appendExec(nil, e); ok {
		return writePayload(w, b, MaxRequest)
	}
	return WriteRequest(w, &Request{Op: OpExec, Exec: e})
}

// appendExec appends the request for a command that has nothing rare in it.
func appendExec(b []byte, e *Exec) (_ []byte, ok bool) {
	rare := *e // what is left of it when the usual is taken out
	rare.ID, rare.Argv, rare.Env, rare.Dir, rare.Stdin, rare.GraceMs, rare.While = "", nil, nil, "", false, 0, ""
	at := len(b)
	b = append(b, `{"op":"`+OpExec+`","exec":{"id":`...)
	b = appendText(b, e.ID)
	b = appendTexts(append(b, `,"argv":`...), e.Argv)
	b = appendTexts(append(b, `,"env":`...), e.Env)
	b = appendText(append(b, `,"dir":`...), string(e.Dir))
	b = strconv.AppendBool(append(b, `,"stdin":`...), e.Stdin)
	b = strconv.AppendInt(append(b, `,"graceMs":`...), e.GraceMs, 10)
	b = appendText(append(b, `,"while":`...), e.While)
	b = append(b, `}}`...)
	return b, rare.isZero() && utf8.Valid(b[at:])
}

// isZero reports whether nothing is asked for.
func (e *Exec) isZero() bool {
	return e.ID == "" && e.Argv == nil && e.Shell == "" && e.Env == nil && e.Dir == "" && !e.Stdin && e.TTY == nil && !e.Background &&
		e.TimeoutMs == 0 && e.GraceMs == 0 && !e.EndTree && e.Cap == nil && e.Grant == "" && e.While == ""
}

func appendTexts(b []byte, texts []Text) []byte {
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, string(text))
	}
	return append(b, ']')
}

// appendText appends a string as JSON.
func appendText(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// Exit reads the payload of FrameExit. That of most commands is numbers only, and
// read by hand.
func (f Frame) Exit() (*Exit, error) {
	var plain, exit Exit
	if plain.readNumbers(f.Payload) {
		return &plain, nil
	}
	return &exit, f.Decode(&exit)
}

// readNumbers reads an exit that has nothing but numbers. It returns false if
// there is anything else.
func (x *Exit) readNumbers(payload []byte) bool {
	b, begun := bytes.CutPrefix(payload, []byte("{"))
	b, ended := bytes.CutSuffix(b, []byte("}"))
	for more := true; more; {
		var field []byte
		field, b, more = bytes.Cut(b, []byte(","))
		name, value, _ := bytes.Cut(field, []byte(":"))
		n, ok := number(value)
		if !ok || !x.setNumber(name, n) {
			return false
		}
	}
	return begun && ended
}

// number reads a whole number that is written as JSON does. Those of more digits
// than every int64 has room for are left to others.
func number(digits []byte) (n int64, ok bool) {
	const most = 18
	digits, negative := bytes.CutPrefix(digits, []byte("-"))
	if len(digits) == 0 || len(digits) > most || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || '9' < c {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

func (x *Exit) setNumber(name []byte, n int64) bool {
	switch string(name) {
	case `"code"`:
		x.Code = int(n)
	case `"userUs"`:
		x.UserUs = n
	case `"systemUs"`:
		x.SystemUs = n
	case `"maxRss"`:
		x.MaxRSS = n
	case `"durationUs"`:
		x.DurationUs = n
	case `"stdout"`:
		x.Stdout = n
	case `"stderr"`:
		x.Stderr = n
	default:
		return false
	}
	return true
}
