package script_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/policy/shell/script"
)

// calls writes the commands of a script in one line.
func calls(text string) string {
	var all []string
	for _, c := range script.Read(text).Commands {
		all = append(all, strings.Join(append([]string{c.Name}, c.Args...), " "))
	}
	return strings.Join(all, "; ")
}

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"list":             {"a 1; b 2\nc 3 &", "a 1; b 2; c 3"},
		"quotes":           {`a 'b c' "d e" f\ g "h"'i'`, "a b c d e f g hi"},
		"directory":        {"/usr/bin/a b", "a b"},
		"assignment":       {"A=1 a b", "a b"},
		"only assignments": {"A=1 B=2", ""},
		"computed":         {`a $B "$C" d`, "a   d"},
		"computed program": {`$A b`, " b"},
		"and":              {"a && b && c", "a; b; c"},
		"or":               {"a || b", ""},
		"or exit":          {"a || exit 1", "a"},
		"or a failing end": {"a || { echo no; exit 1; }", "a"},
		"or exit well":     {"a || exit 0", ""},
		"test":             {"[ -f x ] && a; [[ -f x ]] && b; test -f x && c", "[ -f x ]; test -f x"},
		"which":            {"which a && b", "which a"},
		"pipe":             {"a | b", "a; b"},
		"group":            {"(a; {  b; })", "a; b"},
		"loop":             {"for x in 1 2; do a; done", "a"},
		"empty loop":       {"for x in; do a; done", ""},
		"while":            {"while a; do b; done", ""},
		"condition":        {"if a; then b; else c; fi; d", "d"},
		"choice":           {"case x in x) a;; esac", ""},
		"function":         {"f() { a; }; b", "b"},
		"negation":         {"! a", ""},
		"starters":         {"env -i A=1 nice -n 5 nohup a", "a"},
		"timeout":          {"timeout -k 5 60 a", "a"},
		"timeout alone":    {"timeout", ""},
		"asks for a path":  {"command -v a", ""},
		"shell":            {`sh -c 'a; bash -lc "b"'`, "a; b"},
		"shell with file":  {"sh x.sh", ""},
		"too deep":         {nested("a", 6), ""},
		"deep enough":      {nested("a", 3), "a"},
		"comment":          {"a # b", "a"},
		"broken":           {"a; if then", ""},
		"too long":         {strings.Repeat("a;", script.MaxScript), ""},
		"empty":            {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := calls(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// nested puts a command into that many shells.
func nested(command string, depth int) string {
	for range depth {
		command = "sh -c '" + strings.ReplaceAll(command, "'", `'\''`) + "'"
	}
	return command
}

func TestSudo(t *testing.T) {
	for _, text := range []string{"sudo a", "sudo -E A=1 a", "doas a", "/usr/bin/sudo env a"} {
		read := script.Read(text).Commands
		if len(read) != 1 || read[0].Name != "a" || !read[0].Sudo {
			t.Errorf("%s: %+v", text, read)
		}
	}
}

func TestWrites(t *testing.T) {
	got := script.Read(`a > /x >> /y 2> /z < /in; b >| '/q'; c > "$D"; d || e > /never; f 2>&1`).Writes
	if want := "/x /y /z /q "; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, " "), want)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"a && b || c | d; (e)", "sh -c 'x'", "((((", "$(x)", "\x00", "a <<E\nb\nE"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range script.Read(text).Commands {
			if strings.Contains(c.Name, "/") {
				t.Errorf("%q runs %q", text, c.Name)
			}
		}
	})
}
