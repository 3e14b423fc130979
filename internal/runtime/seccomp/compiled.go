package seccomp

import (
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// What Compile gives, one file for each architecture and modes, an instruction a line: compiling
// takes milliseconds, which every command that makes a sandbox would wait for. A
// test compares, and writes them anew with -update.
//
//go:embed compiled
var compiledFiles embed.FS

// Compiled returns our own filter as Compile and Bytes would.
func Compiled(arch string, modes Modes) ([]byte, error) {
	text, err := compiledFiles.ReadFile("compiled/" + arch + "." + string(modes))
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: architecture %q is not supported", arch)
	}
	program, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		return nil, fmt.Errorf("seccomp profile of %s: %w", arch, err)
	}
	return program, nil
}
