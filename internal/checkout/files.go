package checkout

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The bounds of what is read of a repository's files.
const (
	maxGitFile = 4 << 10  // HEAD, gitdir, commondir and loose refs
	maxConfig  = 1 << 20  // one configuration file
	maxPacked  = 64 << 20 // packed-refs and shallow
	maxRefs    = 200_000
)

// firstLine returns the first line of a small file, without space around it; "" if
// it cannot be read.
func firstLine(path string) string {
	text, err := readFile(path, maxGitFile)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// readFile reads a regular file of at most limit bytes. It never waits for a FIFO.
func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, limit)
}

// readBeneath reads a regular file of at most limit bytes below a root, whose
// links lead nowhere else.
func readBeneath(root *os.Root, name string, limit int64) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, limit)
}

func readAll(file *os.File, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file.Name())
	}
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", file.Name(), limit)
	}
	return text, err
}
