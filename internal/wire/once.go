package wire

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// OpenOnce greets and asks for a command in one message. The guest does not
// answer the greeting: what follows are the frames of the command, Started first,
// or an Error. A guest that ignored a part of the request would misunderstand it,
// so none but one of this version is spoken to.
func OpenOnce(w io.Writer, client string, e *Exec) error {
	buf := bytes.NewBufferString(magic)
	if err := writePayload(buf, helloOnce(client), MaxHello); err != nil {
		return err
	}
	if err := writeExec(buf, e); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}

// helloOnce is written by hand, as is most of writeExec: package json takes its
// time for the first value of every type, and whoever opens such a wire writes
// one value, and ends.
func helloOnce(client string) []byte {
	version := strconv.Itoa(MaxVersion)
	b := []byte(`{"min":` + version + `,"max":` + version + `,"epoch":0,"kind":"` + string(KindOnce) + `","client":`)
	return append(appendText(b, client), '}')
}

// writeExec writes the request for a command.
func writeExec(w io.Writer, e *Exec) error {
	rare := *e // what is left of it when the usual is taken out
	rare.ID, rare.Argv, rare.Env, rare.Dir, rare.Stdin, rare.GraceMs, rare.While = "", nil, nil, "", false, 0, ""
	b := []byte(`{"op":"` + string(OpExec) + `","exec":{"id":`)
	b = appendText(b, e.ID)
	b = appendTexts(append(b, `,"argv":`...), e.Argv)
	b = appendTexts(append(b, `,"env":`...), e.Env)
	b = appendText(append(b, `,"dir":`...), string(e.Dir))
	b = strconv.AppendBool(append(b, `,"stdin":`...), e.Stdin)
	b = strconv.AppendInt(append(b, `,"graceMs":`...), e.GraceMs, 10)
	b = appendText(append(b, `,"while":`...), e.While)
	if b = append(b, `}}`...); !rare.isZero() || !utf8.Valid(b) {
		return WriteRequest(w, &Request{Op: OpExec, Exec: e})
	}
	return writePayload(w, b, MaxRequest)
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
	if plain.readNumbers(string(f.Payload)) {
		return &plain, nil
	}
	return &exit, f.Decode(&exit)
}

// readNumbers reads an exit that has nothing but numbers. It returns false if
// there is anything else.
func (x *Exit) readNumbers(s string) bool {
	s, begun := strings.CutPrefix(s, "{")
	s, ended := strings.CutSuffix(s, "}")
	for field := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(field, ":")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || !x.setNumber(name, n) {
			return false
		}
	}
	return begun && ended
}

func (x *Exit) setNumber(name string, n int64) bool {
	switch name {
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
