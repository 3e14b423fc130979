package takeover

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// State names what a path is: nothing, a directory, a link, or a file with its mode and its
// hash.
func State(root *os.Root, name string) (string, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "nothing", nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "directory", nil
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := root.Readlink(name)
		return "link to " + text, err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is no file", name)
	}
	content, err := root.ReadFile(name)
	return fmt.Sprintf("file %04o %s", info.Mode().Perm(), Sum(content)), err
}

// Sum returns the hash of a content.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
