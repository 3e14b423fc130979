//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmePrograms are the programs that run what the READMEs show, by its language: that
// which is marked as TypeScript needs no compiler with a new Node.
var readmePrograms = map[string]string{"python": "venv/bin/python", "js": "node", "ts": "node24"}

// readmeBlock matches a program in a README.
var readmeBlock = regexp.MustCompile("(?s)```(python|js|ts)\n(.*?)```")

// runReadmes runs what the READMEs of the packages show: each program prints 42.
func (r *reader) runReadmes(t *testing.T, installed string) {
	t.Helper()
	for _, name := range []string{"python", "typescript"} {
		text, err := os.ReadFile(filepath.Join(installed, name, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range readmeBlock.FindAllStringSubmatch(string(text), -1) {
			path := filepath.Join(installed, "project", fmt.Sprintf("%s%d.mjs", name, i))
			if err := os.WriteFile(path, []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(installed, readmePrograms[block[1]]), path)
			cmd.Dir, cmd.Env = r.home, r.env
			if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "42" {
				t.Errorf("%s: %v\n%s", block[1], err, out)
			}
		}
	}
}
