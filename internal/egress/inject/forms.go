package inject

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
)

// form is one spelling of a text, and what takes its place: as many bytes, so that
// the length of a message stays what its head says.
type form struct {
	secret      string // whose text it is
	text        []byte
	replacement []byte
}

// formsOf returns every spelling of text that is searched for. Each is replaced by
// the same spelling of with if that has the same length, else by asterisks.
func formsOf(secret, text, with string) []form {
	var forms []form
	if len(with) != len(text) {
		with = strings.Repeat("*", len(text))
	}
	replacements := spellings(with)
	for i, spelled := range spellings(text) {
		replacement := replacements[i]
		if len(replacement) != len(spelled) {
			replacement = strings.Repeat("*", len(spelled))
		}
		if !hasForm(forms, spelled) {
			forms = append(forms, form{secret, []byte(spelled), []byte(replacement)})
		}
	}
	return forms
}

func hasForm(forms []form, text string) bool {
	for i := range forms {
		if string(forms[i].text) == text {
			return true
		}
	}
	return false
}

// spellings returns a text in plain, JSON-escaped, percent-escaped and base64 form.
// The order is the same for every text.
func spellings(text string) []string {
	quoted := strconv.QuoteToASCII(text)
	quoted = quoted[1 : len(quoted)-1]
	slashed := strings.ReplaceAll(quoted, "/", `\/`)
	query := url.QueryEscape(text)
	escaped := percentAll(text)
	all := []string{
		text, quoted, slashed, htmlEscaped(quoted), htmlEscaped(slashed), query, lowerEscapes(query), url.PathEscape(text), lowerEscapes(url.PathEscape(text)),
		escaped, strings.ToUpper(escaped),
	}
	for offset := range 3 {
		all = append(all, innerBase64(base64.StdEncoding, text, offset), innerBase64(base64.URLEncoding, text, offset))
	}
	return all
}

// htmlEscaped spells the characters that JSON encoders escape for HTML.
func htmlEscaped(text string) string {
	return strings.NewReplacer("&", `\u0026`, "<", `\u003c`, ">", `\u003e`).Replace(text)
}

// lowerEscapes spells the escapes of a percent-escaped text with small digits.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// percentAll escapes every byte.
func percentAll(text string) string {
	digits := hex.EncodeToString([]byte(text))
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		b.WriteString("%" + digits[i:i+2])
	}
	return b.String()
}

// innerBase64 returns the base64 digits that depend on text alone, wherever it stands
// in a longer encoded text: offset is how many bytes of its first group of three are
// other text.
func innerBase64(encoding *base64.Encoding, text string, offset int) string {
	whole := encoding.WithPadding(base64.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", offset) + text))
	from := (offset*8 + 5) / 6
	to := (offset + len(text)) * 8 / 6
	return whole[from:to]
}
