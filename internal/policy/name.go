package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	// maxName is the longest name of a container: it is a host name inside.
	maxName = 63

	slugBase   = 32 // readable part of a slug
	slugDigest = 8  // hexadecimal digits that tell slugs apart
	cutDigest  = 12 // the same for a name that had to be cut

	// A scope key with an account gets a digest long enough that no collision with
	// another account's can be found, and a shorter readable part to stay within
	// maxName.
	accountBase   = 12
	accountDigest = 32

	pairSuffix = "-net"
)

// Slug is a scope key in a form that file systems and engines accept. Different
// keys have different slugs up to collisions of the digest, so a lookup by slug
// compares the scope key too.
func Slug(scopeKey string) string {
	text := trim(scopeKey)
	if text == "" {
		text = "session"
	}
	base, digits := slugBase, slugDigest
	if hasAccount(text) {
		base, digits = accountBase, accountDigest
	}
	readable := strings.Trim(replaceRuns(lower(text), isSlugByte), "-")
	readable = readable[:min(len(readable), base)]
	if readable == "" {
		readable = "session"
	}
	return readable + "-" + digest(text, digits)
}

// DirName is the name of a scope's directory under the workspace root.
func DirName(scopeKey string) string {
	if scopeKey == sharedScopeKey {
		return sharedScopeKey
	}
	return Slug(scopeKey)
}

// ContainerName is the name of the sandbox of a scope.
func ContainerName(prefix, scopeKey string) (string, error) {
	name := fit(prefix+DirName(scopeKey), digitsFor(scopeKey))
	if !validContainerName(name) {
		return "", errhint.With(
			fmt.Errorf("container name %q: not a name that an engine accepts", name),
			"Set sandbox.docker.containerPrefix to letters, digits, \"_\", \".\" and \"-\", with a letter or digit first.")
	}
	return name, nil
}

// PairName is the name of the networked half of a sandbox.
func PairName(name string) string { return fit(name+pairSuffix, accountDigest) }

// fit cuts a name that is too long, and keeps what tells it from others.
func fit(name string, digits int) string {
	if len(name) <= maxName {
		return name
	}
	return name[:maxName-digits-1] + "-" + digest(name, digits)
}

func digitsFor(scopeKey string) int {
	if hasAccount(scopeKey) {
		return accountDigest
	}
	return cutDigest
}

func hasAccount(scopeKey string) bool { return strings.HasPrefix(scopeKey, accountPrefix) }

func digest(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

func isSlugByte(c byte) bool {
	return isLowerAlnum(c) || c == '.' || c == '_' || c == '-'
}

// validContainerName is the rule of the Docker engine for names.
func validContainerName(name string) bool {
	if len(name) < 2 || !isAlnum(name[0]) {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlnum(c) && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}
