package inject

import (
	"crypto/rand"
	"errors"
	"math"
	"math/big"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// MinValue is the fewest characters of a value. A shorter one could not be told from
// ordinary text, neither it nor its placeholder.
const MinValue = 8

// minRandom is how many bits of a placeholder must be random.
const minRandom = 40

// prefixes are the public beginnings of well-known kinds of tokens, by which programs
// recognise them. A placeholder has the one that its value has; longer ones come first.
var prefixes = []string{
	"github_pat_", "dckr_pat_", "rubygems_", "sk-proj-", "sk-ant-", "sk-or-", "sk-", "glpat-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
	"npm_", "pypi-", "hf_", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "eyJ",
}

// uuid is a value whose hyphens are part of its shape.
var uuid = lazyregexp.New(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// alphabets are tried in order: a placeholder has the first that holds every
// character of its value.
var alphabets = []string{"0123456789", "0123456789abcdef", "0123456789ABCDEF", "abcdefghijklmnopqrstuvwxyz0123456789", alphanumeric}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// newPlaceholder returns a random text of the shape and length of value. It holds
// nothing of the value but the public beginning of its kind, its length, its alphabet
// and the hyphens or dots of a UUID or a JSON web token.
func newPlaceholder(value string) (string, error) {
	if len(value) < MinValue {
		return "", errors.New("its value has fewer than 8 characters, and could not be told from ordinary text")
	}
	prefix, fixed := shapeOf(value)
	alphabet := alphabetOf(value[len(prefix):], fixed)
	if bits(len(value)-len(prefix), alphabet) < minRandom {
		prefix, fixed, alphabet = "", "", alphanumeric
	}
	for {
		made, err := randomLike(value, prefix, fixed, alphabet)
		if err != nil || made != value {
			return made, err
		}
	}
}

// shapeOf returns the public beginning of a value, and the characters that keep their
// places.
func shapeOf(value string) (prefix, fixed string) {
	switch {
	case uuid.MatchString(value):
		return "", "-"
	case strings.HasPrefix(value, "eyJ") && strings.Count(value, ".") == 2:
		return "eyJ", "."
	}
	for _, p := range prefixes {
		if strings.HasPrefix(value, p) {
			return p, ""
		}
	}
	return "", ""
}

func alphabetOf(text, fixed string) string {
	for _, alphabet := range alphabets {
		if strings.Trim(text, alphabet+fixed) == "" {
			return alphabet
		}
	}
	return alphanumeric
}

func bits(n int, alphabet string) float64 { return float64(n) * math.Log2(float64(len(alphabet))) }

func randomLike(value, prefix, fixed, alphabet string) (string, error) {
	made := []byte(prefix)
	for _, c := range []byte(value[len(prefix):]) {
		if strings.IndexByte(fixed, c) >= 0 {
			made = append(made, c)
			continue
		}
		at, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			return "", err
		}
		made = append(made, alphabet[at.Int64()])
	}
	return string(made), nil
}
