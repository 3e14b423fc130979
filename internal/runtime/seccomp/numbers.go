package seccomp

import (
	"embed"
	"fmt"
	"strings"
)

// The kernel's call numbers, one file an architecture, a "name number" line
// each. They are those of golang.org/x/sys/unix, which has constants only for
// the architecture it is built for; a test compares them.
//
//go:embed numbers
var numberFiles embed.FS

// callNumbers returns the numbers of an architecture's calls by name.
func callNumbers(arch string) (map[string]uint32, error) {
	text, err := numberFiles.ReadFile("numbers/" + arch)
	if err != nil {
		return nil, fmt.Errorf("system call numbers: architecture %q is not supported", arch)
	}
	numbers := map[string]uint32{}
	for line := range strings.Lines(string(text)) {
		var name string
		var number uint32
		if _, err := fmt.Sscan(line, &name, &number); err != nil {
			return nil, fmt.Errorf("system call numbers of %s: %q: %w", arch, line, err)
		}
		numbers[name] = number
	}
	return numbers, nil
}
