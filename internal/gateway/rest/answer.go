package rest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// minCompressed is the size of an answer from which on it is compressed.
const minCompressed = 1 << 10

// answer writes the JSON answer, compressed if it is large and the caller takes that.
func (c *call) answer(status int, v any) error {
	var b bytes.Buffer
	// Output of programs inside sandboxes need not be UTF-8.
	if err := json.MarshalWrite(&b, v, jsontext.AllowInvalidUTF8(true), json.Deterministic(true)); err != nil {
		return err
	}
	h := c.w.Header()
	h.Add("Vary", "Accept-Encoding")
	if status == http.StatusOK && c.r.Method == http.MethodGet && c.isKnown(b.Bytes()) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	h.Set("Content-Type", "application/json")
	if b.Len() < minCompressed || !takesGzip(c.r) {
		c.w.WriteHeader(status)
		_, err := c.w.Write(b.Bytes())
		return err
	}
	h.Set("Content-Encoding", "gzip")
	c.w.WriteHeader(status)
	z := gzip.NewWriter(c.w)
	if _, err := z.Write(b.Bytes()); err != nil {
		return err
	}
	return z.Close()
}

// isKnown gives the answer its ETag, and reports whether the caller has it already. The
// tag is weak: the same answer may be sent compressed.
func (c *call) isKnown(body []byte) bool {
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
	c.w.Header().Set("ETag", "W/"+tag)
	for part := range strings.SplitSeq(strings.Join(c.r.Header.Values("If-None-Match"), ","), ",") {
		if strings.TrimPrefix(strings.TrimSpace(part), "W/") == tag {
			return true
		}
	}
	return false
}

// takesGzip reads the Accept-Encoding header.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			weight = strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
			return weight == "" || strings.Trim(weight, "0.") != ""
		}
	}
	return false
}
