package secret

import (
	"bytes"
	"fmt"
	"strings"
)

// Variable is a line of a .env file.
type Variable struct {
	Name string
	Text []byte // as programs that read such files have it
	Line int
}

// ParseEnv reads a .env file: NAME=VALUE in each line, with or without export and
// quotation marks. Variables in values are not resolved. Errors name a line, and nothing
// that is in it.
func ParseEnv(content []byte) ([]Variable, error) {
	var all []Variable
	number := 0
	for line := range bytes.Lines(content) {
		number++
		text := strings.TrimSpace(string(line))
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(text, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || !isVariable(name) {
			return nil, fmt.Errorf("line %d is not NAME=VALUE", number)
		}
		read, ok := unquote(strings.TrimSpace(value))
		if !ok {
			return nil, fmt.Errorf("line %d: the quotation does not end", number)
		}
		all = append(all, Variable{name, []byte(read), number})
	}
	return all, nil
}

func isVariable(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"0123456789") == "" && strings.Contains(letters, name[:1])
}

// unquote returns a value without its quotation marks and the comment behind it.
func unquote(value string) (string, bool) {
	if value == "" || value[0] != '"' && value[0] != '\'' {
		value, _, _ = strings.Cut(value, " #")
		return strings.TrimSpace(value), true
	}
	quote, rest := value[0], value[1:]
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			return b.String(), true
		case c == '\\' && quote == '"' && i+1 < len(rest):
			i++
			b.WriteByte(rest[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}
