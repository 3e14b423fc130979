package provide

import "github.com/atoll-run/atoll/internal/hostpath"

// ReplaceFile writes a file of the state directory, with a last newline, so that a reader
// finds the old content or the new, never a part.
func ReplaceFile(path string, content []byte) error {
	return hostpath.Replace(path, append(content, '\n'), 0o600)
}
