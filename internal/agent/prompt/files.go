package prompt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// MaxFile bounds a behaviour file.
const MaxFile = 2 << 20

// behaviour lists the files that describe an agent, in the order in which they
// are read to it. BOOTSTRAP.md is for a first conversation with a person and
// HEARTBEAT.md for a clock that does not tick here: neither is read.
func behaviour() []string {
	return []string{"AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md", "MEMORY.md"}
}

// File is a behaviour file.
type File struct {
	Name string
	Text string
}

// Files reads the behaviour files of a host directory, which must be the agent
// workspace and never a copy that a sandbox writes to. What cannot be read is
// left out and named; a file that is not there is no problem.
func Files(dir string) (files []File, problems []error) {
	root, err := hostpath.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	defer root.Close()
	for _, name := range behaviour() {
		switch text, err := readFile(root, name); {
		case err == nil:
			files = append(files, File{name, text})
		case !errors.Is(err, fs.ErrNotExist):
			problems = append(problems, fmt.Errorf("%s was not read: %w", name, err))
		}
	}
	return files, problems
}

func readFile(root *os.File, name string) (string, error) {
	data, err := hostpath.ReadRegularBeneath(root, name, MaxFile)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(data) {
		return "", errors.New("it is no text")
	}
	return string(data), nil
}
