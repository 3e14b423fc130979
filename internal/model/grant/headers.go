package grant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Headers that name the end user, the run and other metadata of a call.
const (
	EndUserHeader  = "x-litellm-end-user-id"
	MetadataHeader = "x-litellm-spend-logs-metadata"
	RunHeader      = "x-cogni-run-id"
)

// Limits of the headers of a session's calls.
const (
	MaxHeaders     = 16
	maxHeaderName  = 64
	maxHeaderValue = 2 << 10
	maxHeaderBytes = 8 << 10
)

// Headers checks the headers that a client wants to be sent with its calls, and returns
// them with their names in lower case. Names begin with x-, and are neither those of
// credentials nor reserved; values are plain ASCII.
func Headers(asked map[string]string) (map[string]string, error) {
	if len(asked) > MaxHeaders {
		return nil, fmt.Errorf("%w: %d headers are over the limit of %d", ErrInvalid, len(asked), MaxHeaders)
	}
	var problems []error
	size, headers := 0, make(map[string]string, len(asked))
	for _, given := range slices.Sorted(maps.Keys(asked)) {
		name, value := strings.ToLower(given), asked[given]
		if err := checkHeader(name, value); err != nil {
			problems = append(problems, err)
			continue
		}
		if _, twice := headers[name]; twice {
			problems = append(problems, fmt.Errorf("the header %s is given twice", name))
		}
		headers[name] = value
		size += len(name) + len(value)
	}
	if size > maxHeaderBytes {
		problems = append(problems, fmt.Errorf("the headers have %d bytes, more than %d", size, maxHeaderBytes))
	}
	if problems != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(problems...))
	}
	return headers, nil
}

func checkHeader(name, value string) error {
	switch {
	case !isHeaderName(name):
		return fmt.Errorf("%.80q cannot be a header of a session: its name begins with x-, and has up to %d letters, digits and hyphens", name, maxHeaderName)
	case isReserved(name):
		return fmt.Errorf("the header %s is not a session's to set", name)
	case len(value) > maxHeaderValue:
		return fmt.Errorf("the header %s has %d bytes, more than %d", name, len(value), maxHeaderValue)
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
		return fmt.Errorf("the header %s has line breaks or other characters that are not plain ASCII", name)
	case (name == EndUserHeader || name == RunHeader) && !IsHeaderID(value):
		return fmt.Errorf("the header %s has no id of up to %d characters", name, maxName)
	case name == MetadataHeader:
		_, err := Metadata(value)
		return err
	}
	return nil
}

// Metadata parses the value of MetadataHeader.
func Metadata(value string) (members map[string]jsontext.Value, err error) {
	if err := json.Unmarshal([]byte(value), &members); err != nil || members == nil {
		return nil, fmt.Errorf("the header %s is not a JSON object", MetadataHeader)
	}
	return members, nil
}

func isHeaderName(name string) bool {
	return strings.HasPrefix(name, "x-") && len(name) > 2 && len(name) <= maxHeaderName &&
		!strings.ContainsFunc(name, func(c rune) bool { return c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') })
}

// IsHeaderID reports whether value is an id that every parser of headers reads alike.
func IsHeaderID(value string) bool {
	return value != "" && len(value) <= maxName && !strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"\,`, c) })
}

// isReserved reports whether a header may carry a credential, configures the upstream,
// or is set by Atoll itself.
func isReserved(name string) bool {
	if name == EndUserHeader || name == MetadataHeader {
		return false
	}
	for _, prefix := range []string{"x-litellm-", "x-atoll-", "x-forwarded-", "x-original-", "x-real-", "x-http-", "x-amz-", "x-goog-", "x-ms-", "x-envoy-", "x-rewrite-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.ContainsFunc(strings.Split(name, "-"), func(word string) bool {
		return slices.Contains(credentialWords, word)
	})
}

// credentialWords are parts of names of headers that carry credentials.
var credentialWords = []string{
	"key", "apikey", "token", "auth", "authorization", "authentication", "secret", "password", "passwd", "credential", "credentials",
	"cookie", "signature", "jwt", "bearer", "csrf", "xsrf", "host", "cert",
}
