package inject

import (
	"encoding/base64"
	"strings"
)

// inject returns a header's value with the secret in the place of its placeholder, and
// the rest of what the caller wrote there. It reports false if the placeholder is not
// in it exactly once.
func (g *given) inject(written string) (value, rest string, ok bool) {
	if user, basic := cutBasic(written); basic {
		value, rest, ok = g.put(user)
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(value)), rest, ok
	}
	value, rest, ok = g.put(written)
	if ok && g.Form != "" {
		value = g.form()
	}
	return value, rest, ok
}

// put replaces the placeholder, which must stand alone: between the ends of the text,
// spaces, colons and quotation marks.
func (g *given) put(written string) (value, rest string, ok bool) {
	before, after, found := strings.Cut(written, g.placeholder)
	if !found || strings.Contains(after, g.placeholder) || !endsWord(before) || !startsWord(after) {
		return "", "", false
	}
	return before + g.Value.Reveal() + after, before + after, true
}

func endsWord(before string) bool {
	return before == "" || strings.ContainsAny(before[len(before)-1:], " :\"=")
}

func startsWord(after string) bool { return after == "" || strings.ContainsAny(after[:1], " :\",") }

// form returns the header's value in the form that the secret asks for. A form that
// begins with Basic is encoded as that scheme is.
func (g *given) form() string {
	value := strings.Replace(g.Form, hole, g.Value.Reveal(), 1)
	if credentials, ok := strings.CutPrefix(value, "Basic "); ok {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
	}
	return value
}

// cutBasic returns the user and password of the scheme Basic.
func cutBasic(written string) (user string, ok bool) {
	scheme, encoded, ok := strings.Cut(written, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	return string(plain), err == nil
}

// isFieldName reports whether a text can be the name of a header that carries a
// credential.
func isFieldName(name string) bool {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
		return false
	}
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect":
		return false
	}
	return true
}
