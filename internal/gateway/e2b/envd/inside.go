package envd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
)

type insideKey struct{}

// withInside returns the context of a use of a sandbox, from which insideOf takes it.
func withInside(in *sandboxes.Inside) context.Context {
	return context.WithValue(in.Ctx, insideKey{}, in)
}

func insideOf(ctx context.Context) *sandboxes.Inside {
	in, _ := ctx.Value(insideKey{}).(*sandboxes.Inside)
	return in
}

// isSigned reports whether the URL of a request for a file has the signature that only who
// knows the access token can make, and which has not expired.
func isSigned(r *http.Request, token string) bool {
	q := r.URL.Query()
	given := q.Get("signature")
	if given == "" {
		return false
	}
	operation := "read"
	if r.Method == http.MethodPost {
		operation = "write"
	}
	text := strings.Join([]string{q.Get("path"), operation, q.Get("username"), token}, ":")
	if expires := q.Get("signature_expiration"); expires != "" {
		at, err := strconv.ParseInt(expires, 10, 64)
		if err != nil || time.Now().Unix() > at {
			return false
		}
		text += ":" + expires
	}
	sum := sha256.Sum256([]byte(text))
	want := "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}
