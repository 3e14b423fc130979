package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CanonicalJSON writes a value the way the original does before it hashes it:
// object keys in the order of JavaScript's localeCompare, except that keys that
// look like array indexes come first in numeric order, and numbers and strings
// as JSON.stringify forms them. It accepts nil, bool, string, int64, float64,
// []string, []any and map[string]any; anything else is a mistake of the
// programmer and panics.
func CanonicalJSON(value any) string { return string(appendValue(nil, value)) }

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendString(b, v)
	case int64:
		return appendNumber(b, float64(v))
	case float64:
		return appendNumber(b, v)
	case []string:
		return appendList(b, v)
	case []any:
		return appendList(b, v)
	case map[string]any:
		return appendObject(b, v)
	}
	panic(fmt.Sprintf("policy: no canonical JSON for %T", value))
}

func appendList[T any](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, item)
	}
	return append(b, ']')
}

func appendObject(b []byte, object map[string]any) []byte {
	b = append(b, '{')
	for i, key := range sortedKeys(object) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
		b = appendValue(b, object[key])
	}
	return append(b, '}')
}

// appendNumber forms a number as JavaScript does, for which all are float64.
func appendNumber(b []byte, f float64) []byte {
	const smallest, largest = 1e-6, 1e21 // beyond these JavaScript uses an exponent
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(b, "null"...)
	case f == 0:
		return append(b, '0') // also for minus zero
	case abs >= smallest && abs < largest:
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	sign, digits := exponent[:1], strings.TrimLeft(exponent[1:], "0")
	return append(b, mantissa+"e"+sign+digits...)
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case strings.ContainsRune("\b\t\n\f\r", r):
			b = append(b, '\\', shortEscapes[r])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

var shortEscapes = map[rune]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}

// sortedKeys returns the keys of an object in the order in which they are
// written.
func sortedKeys(object map[string]any) []string {
	keys := make([]sortKey, 0, len(object))
	for key := range object {
		keys = append(keys, newSortKey(key))
	}
	slices.SortFunc(keys, sortKey.compare)
	sorted := make([]string, len(keys))
	for i, k := range keys {
		sorted[i] = k.key
	}
	return sorted
}

// sortKey is an object key with what decides its place. Earlier fields decide
// before later ones.
type sortKey struct {
	notIndex bool   // keys that look like array indexes come first
	index    uint32 // in numeric order
	weights  []rune // places of the characters in the collation
	cases    string // lower case before upper case in words that are otherwise equal
	key      string // for characters that collation ignores: the original leaves it to chance
}

func newSortKey(key string) sortKey {
	if index, ok := arrayIndex(key); ok {
		return sortKey{index: index, key: key}
	}
	return sortKey{notIndex: true, weights: weights(key), cases: strings.Map(swapCase, key), key: key}
}

func (k sortKey) compare(other sortKey) int {
	switch {
	case k.notIndex && !other.notIndex:
		return 1
	case !k.notIndex && other.notIndex:
		return -1
	}
	return cmp.Or(
		cmp.Compare(k.index, other.index),
		slices.Compare(k.weights, other.weights),
		strings.Compare(k.cases, other.cases),
		strings.Compare(k.key, other.key),
	)
}

// arrayIndex recognises the keys that a JavaScript object keeps in numeric order.
func arrayIndex(key string) (uint32, bool) {
	if key == "" || key[0] < '0' || key[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(key, 10, 32)
	return uint32(n), err == nil && n < math.MaxUint32 && strconv.FormatUint(n, 10) == key
}

// collation lists the ASCII characters in the order of the Unicode root
// collation. Case is not part of it.
const collation = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"

// weights are the places of a word's characters in the collation. Control
// characters have none; what is beyond ASCII comes last, by code point.
func weights(s string) []rune {
	w := make([]rune, 0, len(s))
	for _, r := range strings.ToLower(s) {
		switch at := strings.IndexRune(collation, r); {
		case at >= 0:
			w = append(w, rune(at))
		case r > '\x7f':
			w = append(w, rune(len(collation))+r)
		}
	}
	return w
}

// swapCase turns capitals and small letters around, because small ones sort
// first, and drops the characters that collation ignores.
func swapCase(r rune) rune {
	switch {
	case 'a' <= r && r <= 'z':
		return r - 'a' + 'A'
	case 'A' <= r && r <= 'Z':
		return r - 'A' + 'a'
	case r < ' ' && !strings.ContainsRune("\t\n\v\f\r", r) || r == '\x7f':
		return -1
	}
	return r
}
