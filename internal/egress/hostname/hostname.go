// Package hostname reads the names of hosts and the patterns of rules for them.
// A name has one spelling here: lower case, without a trailing dot, ASCII only.
// Everything that is not certainly a name is refused: addresses in any
// spelling, empty and overlong labels, bytes that no name has.
package hostname

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

const (
	maxName  = 253
	maxLabel = 63
)

// The reasons why a text is no name.
var (
	ErrAddress  = errors.New("it is an address, and rules are for names")
	ErrNonASCII = errors.New("it has characters beyond ASCII")
	errEmpty    = errors.New("it is empty")
	errLong     = fmt.Errorf("it is longer than %d characters", maxName)
)

// Canonical returns the one spelling of a host's name. The error says why the
// text is no name, without repeating it.
func Canonical(text string) (string, error) {
	name := strings.TrimSuffix(text, ".")
	switch {
	case name == "":
		return "", errEmpty
	case len(name) > maxName:
		return "", errLong
	case !isASCII(name):
		return "", ErrNonASCII
	case strings.ContainsAny(name, ":[]"):
		return "", ErrAddress
	}
	name = strings.ToLower(name)
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return "", err
		}
	}
	if isNumber(name[strings.LastIndexByte(name, '.')+1:]) {
		return "", ErrAddress
	}
	return name, nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x80 })
}

// checkLabel wants letters, digits, '-' and '_', with a letter or digit at
// both ends.
func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("it has an empty label")
	case len(label) > maxLabel:
		return fmt.Errorf("a label is longer than %d characters", maxLabel)
	case strings.ContainsFunc(label, isForeign):
		return errors.New("it has characters that no name has")
	case !isAlphanumeric(label[0]) || !isAlphanumeric(label[len(label)-1]):
		return errors.New("a label must begin and end with a letter or a digit")
	case strings.HasPrefix(label, "xn--"):
		return checkALabel(label)
	}
	return nil
}

func isForeign(r rune) bool {
	return r != '-' && r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
}

func isAlphanumeric(b byte) bool { return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' }

// strict reads and writes labels as registries do, without any mapping.
var strict = idna.New(idna.ValidateLabels(true), idna.StrictDomainName(true), idna.CheckHyphens(true), idna.CheckJoiners(true), idna.BidiRule())

// checkALabel wants a label in Punycode that is the encoding of a valid
// internationalised label, in the one form that encoding gives.
func checkALabel(label string) error {
	text, err := strict.ToUnicode(label)
	if err != nil || isASCII(text) {
		return errors.New("a label that begins with xn-- is not valid")
	}
	if again, err := strict.ToASCII(text); err != nil || again != label {
		return errors.New("a label that begins with xn-- is not in its one valid form")
	}
	return nil
}

// isNumber reports whether a last label makes a name an IPv4 address for some
// program: decimal or octal digits, or hexadecimal ones after 0x.
func isNumber(label string) bool {
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// Unicode returns how a name is shown to people where it has labels in Punycode,
// and the name itself otherwise.
func Unicode(name string) string {
	if text, err := strict.ToUnicode(name); err == nil {
		return text
	}
	return name
}

// SplitPort separates the port from NAME:PORT. Without one the port is 0.
func SplitPort(text string) (host string, port int, err error) {
	host, digits, found := strings.Cut(text, ":")
	if !found {
		return host, 0, nil
	}
	if strings.Contains(digits, ":") || strings.HasPrefix(text, "[") {
		return "", 0, ErrAddress
	}
	port, err = strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != digits {
		return "", 0, errors.New("the port must be a number from 1 to 65535")
	}
	return host, port, nil
}
