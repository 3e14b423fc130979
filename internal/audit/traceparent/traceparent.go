// Package traceparent reads and writes the header traceparent of the W3C's Trace
// Context, which names the trace of a request. The id goes into logs, into the audit
// log and into calls of models, and nowhere else.
package traceparent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Header is the header's name.
const Header = "traceparent"

const (
	idWidth     = 32
	spanWidth   = 16
	parentWidth = len("00-") + idWidth + len("-") + spanWidth + len("-00")
)

// TraceID returns the id of the trace in a header; "" if there is none, or if the
// header is malformed, as the specification says.
func TraceID(header string) string {
	header = strings.TrimSpace(header)
	// Later versions may have more behind the same beginning.
	if len(header) < parentWidth || len(header) > parentWidth && (header[:2] == "00" || header[parentWidth] != '-') || header[:2] == "ff" {
		return ""
	}
	parts := strings.SplitN(header[:parentWidth], "-", 4)
	if len(parts) != 4 || !isHex(parts[0], 2) || !IsID(parts[1]) || !isID(parts[2], spanWidth) || !isHex(parts[3], 2) {
		return ""
	}
	return parts[1]
}

// IsID reports whether a text is the id of a trace in this form.
func IsID(text string) bool { return isID(text, idWidth) }

func isID(text string, width int) bool {
	return isHex(text, width) && strings.Trim(text, "0") != ""
}

func isHex(text string, width int) bool {
	return len(text) == width && !strings.ContainsFunc(text, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'f') })
}

// SpanIDFor returns the id of a span, which depends on its name alone.
func SpanIDFor(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:spanWidth/2])
}

// TraceIDFor returns the id of a trace of its own, which depends on the name alone.
func TraceIDFor(name string) string {
	sum := sha256.Sum256([]byte("trace\x00" + name))
	return hex.EncodeToString(sum[:idWidth/2])
}

// HeaderValue returns the header of calls that a named span makes within a trace.
func HeaderValue(id, name string) string { return "00-" + id + "-" + SpanIDFor(name) + "-01" }
