//go:build linux

package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// mends [NUMBER] [NAME=VALUE…] PROGRAM ARG…: the program fails and gives a hint; the
// command in the hint (the first, or that of the number), with its placeholders
// replaced, works; then the program works too.
func mends(ts *testscript.TestScript, neg bool, args []string) {
	program := followHint(ts, neg, args)
	ts.Check(ts.Exec(program[0], program[1:]...))
}

// leads …: as mends, but only the command in the hint has to work: it shows what
// there is.
func leads(ts *testscript.TestScript, neg bool, args []string) { followHint(ts, neg, args) }

// followHint runs a program that fails, and then what its hint says.
func followHint(ts *testscript.TestScript, neg bool, args []string) (program []string) {
	number, values := 1, []string{}
	for len(args) > 0 && args[0] != "atoll" {
		if n, err := strconv.Atoi(args[0]); err == nil {
			number = n
		} else if name, value, ok := strings.Cut(args[0], "="); ok {
			values = append(values, name, value)
		}
		args = args[1:]
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: mends [NUMBER] [NAME=VALUE…] atoll [ARG…]")
	}
	if ts.Exec(args[0], args[1:]...) == nil {
		ts.Fatalf("it did not fail")
	}
	commands := hintCommands(ts.ReadFile("stderr"))
	if len(commands) < number {
		ts.Fatalf("the hint has %d commands: %q", len(commands), commands)
	}
	command := strings.NewReplacer(values...).Replace(commands[number-1])
	ts.Check(ts.Exec("sh", "-c", "echo y | "+command))
	return args
}

var (
	quotedCommand = regexp.MustCompile("`([^`]+)`")
	plainCommand  = regexp.MustCompile(`(?:^|: |, or |; or )(atoll [^;,]+)`)
)

// hintCommands are the commands that the hint, or else a note, in stderr names.
func hintCommands(stderr string) (commands []string) {
	_, hint, ok := strings.Cut(stderr, "hint: ")
	if !ok {
		_, hint, _ = strings.Cut(stderr, "note: ")
	}
	hint, _, _ = strings.Cut(hint, "\n")
	for _, form := range []*regexp.Regexp{quotedCommand, plainCommand} {
		for _, match := range form.FindAllStringSubmatch(hint, -1) {
			commands = append(commands, match[1])
		}
		if len(commands) > 0 {
			return commands
		}
	}
	return nil
}
