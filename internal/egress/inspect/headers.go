package inspect

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/atoll-run/atoll/internal/h1"
)

// passedUp returns the header of a program's request for the server: all but what is
// about the connection.
func passedUp(fields []h1.Field) http.Header {
	header := make(http.Header, len(fields)+1)
	for i := range fields {
		name := textproto.CanonicalMIMEHeaderKey(string(fields[i].Name))
		header[name] = append(header[name], string(fields[i].Value))
	}
	dropHops(header)
	for _, name := range []string{"Host", "Content-Length", "Expect", "Proxy-Authorization"} {
		delete(header, name)
	}
	if header["User-Agent"] == nil {
		header["User-Agent"] = nil // net/http would add its own
	}
	return header
}

// passedDown removes what a program must not get of an answer: fields about the
// connection, other places to reach the server at, and values that are malformed.
func passedDown(header http.Header) {
	dropHops(header)
	delete(header, "Alt-Svc")
	for name, values := range header {
		for _, value := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
				delete(header, name)
			}
		}
	}
}

// dropHops removes the fields that are about one connection: the known ones, and those
// that Connection lists.
func dropHops(header http.Header) {
	for _, list := range header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(header, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		delete(header, name)
	}
}
