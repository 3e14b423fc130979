package shell_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/policy/shell"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// checkAgainstShells asks real shells which words they make of plain commands.
func checkAgainstShells(t *testing.T, dir string, commands []string) {
	t.Helper()
	for _, name := range []string{"sh", "bash"} {
		got := splitBy(t, name, dir, commands)
		for i, command := range commands {
			want, err := shell.Plain(command)
			if err != nil {
				t.Fatal(err)
			}
			if i >= len(got) || !slices.Equal(got[i], want) {
				t.Fatalf("%s makes %q of %q, Plain %q", name, got[min(i, len(got)-1)], command, want)
			}
		}
	}
}

// trap makes a directory with files that a glob or a redirection would meet.
func trap(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "gh", "id", "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// splitBy makes the words of each command the arguments of one script after the
// other. There is no program to run, should a command be more than its words.
func splitBy(t *testing.T, name, dir string, commands []string) [][]string {
	t.Helper()
	program := need.Program(t, name, name)
	var script strings.Builder
	for _, command := range commands {
		script.WriteString("set -- " + command + "; printf '%s\\0' \"$@\"; printf '\\n'\n")
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Stdin = strings.NewReader(script.String())
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/nonexistent", "HOME=/nonexistent", "LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, script.String())
	}
	var all [][]string
	for line := range strings.Lines(string(out)) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\x00\n"), "\x00"))
	}
	return all
}

// TestShellRunsTheSame runs whole commands with a program in the place of gh
// that prints what it was called with.
func TestShellRunsTheSame(t *testing.T) {
	dir := t.TempDir()
	stub := "#!/bin/sh\nprintf '%s\\0' gh \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "gh"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{`gh`, `\gh a\ b ''`, `"gh" '$(id)' "\$x"`, `g''h pr "a;b" c\;d \\`} {
		argv, err := shell.Plain(command)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", command)
		cmd.Env = []string{"PATH=" + dir}
		out, err := cmd.Output()
		if want := strings.Join(argv, "\x00") + "\x00"; err != nil || string(out) != want {
			t.Errorf("%s: shell ran %q, %v; want %q", command, out, err, want)
		}
	}
}

// TestRandomCommandsAgree strings the pieces together that shells treat in a
// special way; about one command in ten turns out plain.
func TestRandomCommandsAgree(t *testing.T) {
	pieces := strings.Split("a|b|gh|x=|:|/|.|..|,|-|+|@|^|%|]|}|{|~|!|#|*|?|[|$|`|(|)|<|>|;|&|\"|'|\\|é|\u00a0|☃|''|\"\"|' '|\"\\\"\"| |  |\t", "|")
	pieces = append(pieces, "|", " ", " ", "a", "b")
	random := rand.New(rand.NewPCG(1, 2))
	dir := trap(t)
	var plain []string
	for len(plain) < 5_000 {
		var b strings.Builder
		b.WriteString("gh ")
		for range 1 + random.IntN(9) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		if _, err := shell.Plain(b.String()); err == nil {
			plain = append(plain, b.String())
		}
	}
	for batch := range slices.Chunk(plain, 1000) {
		checkAgainstShells(t, dir, batch)
	}
}

// FuzzPlain checks on any input that what is accepted is what real shells would
// split it into, and that the words quoted again are plain and the same.
func FuzzPlain(f *testing.F) {
	for command := range bypasses() {
		if len(command) < 100 {
			f.Add(command)
		}
	}
	for _, command := range []string{`gh "a\b" 'c'\''d' e\ f`, `gh HEAD~1 {x} a..b ^ % @ + = :`, "gh \u00a0é \\\u00e9"} {
		f.Add(command)
	}
	dir := trap(f)
	f.Fuzz(func(t *testing.T, command string) {
		argv, err := shell.Plain(command)
		if err != nil {
			return
		}
		if len(argv) == 0 || argv[0] == "" {
			t.Fatalf("no program in %q", argv)
		}
		checkAgainstShells(t, dir, []string{command})
		checkQuotedAgain(t, argv)
	})
}

func checkQuotedAgain(t *testing.T, argv []string) {
	t.Helper()
	var b strings.Builder
	for _, word := range argv {
		b.WriteString("'" + strings.ReplaceAll(word, "'", `'\''`) + "' ")
	}
	if b.Len() > shell.MaxCommand {
		return
	}
	again, err := shell.Plain(b.String())
	if err != nil || !slices.Equal(argv, again) {
		t.Errorf("%q quoted is %q, %v", argv, again, err)
	}
}
