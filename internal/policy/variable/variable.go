// Package variable says which environment variables may enter a sandbox. It is
// apart from package policy so that small programs can ask it too, also where
// there is no heap: but for a variable that is too long nothing is taken from it.
package variable

import (
	"fmt"
	"strings"
)

// maxBytes is the most that the kernel passes for one "NAME=value".
const maxBytes = 131071

// secretNames are variables that hold secrets although their names end like no
// other secret's.
func secretNames() [2]string { return [...]string{"AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"} }

// secretEndings end the names of variables that hold secrets.
func secretEndings() [7]string {
	return [...]string{"API_KEY", "TOKEN", "PASSWORD", "PRIVATE_KEY", "SECRET", "_ADMIN_KEY", "_MASTER_KEY"}
}

// Reason says why a variable may not enter whatever is allowed, or "".
func Reason(name, value string) string {
	switch {
	case !isPortable(name):
		return "the name is not made of letters, digits and _"
	case strings.ContainsRune(value, 0):
		return "the value contains a NUL byte"
	case len(name)+len("=")+len(value) > maxBytes:
		return fmt.Sprintf("the value is longer than the %d bytes that a process can be given", maxBytes)
	}
	return ""
}

// SecretReason is why a variable whose name is a secret's may not enter.
const SecretReason = "the name is that of a secret; dangerouslyAllowSecretEnv would pass it"

// IsSecret tells whether a variable's name is that of a secret.
func IsSecret(name string) bool {
	for _, whole := range secretNames() {
		if strings.EqualFold(name, whole) {
			return true
		}
	}
	for _, end := range secretEndings() {
		if at := len(name) - len(end); at >= 0 && strings.EqualFold(name[at:], end) {
			return true
		}
	}
	return false
}

func isPortable(name string) bool {
	for i := range len(name) {
		c := name[i]
		isLetter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !isLetter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
