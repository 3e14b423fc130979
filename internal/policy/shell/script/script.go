// Package script reads a shell script for what it does for certain: the
// commands that run on every way through it, and the files that it writes by
// redirection. What stands behind a condition, or may fail without harm, is
// left out, so that a script is not refused for what it might never do.
//
// It judges nothing, runs nothing, and is no security boundary: a script that
// wants to hide a command from it can.
package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	// MaxScript is the length in bytes of the longest script that is read.
	MaxScript = 64 << 10
	// maxNesting is how deep scripts within scripts (sh -c '…') are read.
	maxNesting = 4
)

// Script is what a shell script does for certain.
type Script struct {
	Commands []Command
	Writes   []string // targets of redirections; "" if only known when it runs
}

// Command is one program with its arguments. An argument that is only known
// when the script runs is "".
type Command struct {
	Name string // without directory
	Args []string
	Sudo bool // asked for another user first
}

// Read understands a script as far as it can. A script that it cannot read does
// nothing for certain.
func Read(text string) *Script {
	s := &Script{}
	s.read(text, 0)
	return s
}

func (s *Script) read(text string, depth int) {
	if len(text) > MaxScript || depth > maxNesting {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return
	}
	s.statements(file.Stmts, depth)
}

func (s *Script) statements(list []*syntax.Stmt, depth int) {
	for _, statement := range list {
		s.statement(statement, depth)
	}
}

func (s *Script) statement(st *syntax.Stmt, depth int) {
	if st.Negated {
		return
	}
	for _, redirect := range st.Redirs {
		s.redirect(redirect)
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(words(c.Args), depth)
	case *syntax.Block:
		s.statements(c.Stmts, depth)
	case *syntax.Subshell:
		s.statements(c.Stmts, depth)
	case *syntax.BinaryCmd:
		s.binary(c, depth)
	case *syntax.ForClause:
		if loop, ok := c.Loop.(*syntax.WordIter); ok && len(loop.Items) > 0 {
			s.statements(c.Do, depth)
		}
	}
}

func (s *Script) binary(c *syntax.BinaryCmd, depth int) {
	switch c.Op {
	case syntax.AndStmt:
		s.statement(c.X, depth)
		if !isQuestion(c.X) {
			s.statement(c.Y, depth)
		}
	case syntax.OrStmt:
		if endsScript(c.Y) {
			s.statement(c.X, depth)
		}
	default: // a pipe
		s.statement(c.X, depth)
		s.statement(c.Y, depth)
	}
}

func (s *Script) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		s.Writes = append(s.Writes, literal(r.Word))
	}
}

// call records a command, after taking off the programs that only start others.
func (s *Script) call(argv []string, depth int) {
	sudo := false
	for len(argv) > 0 {
		name := programName(argv[0])
		switch {
		case name == "sudo" || name == "doas":
			sudo = true
			argv = skipOptions(argv[1:])
		case name == "command" && len(argv) > 1 && (argv[1] == "-v" || argv[1] == "-V"):
			return // only asks where a program is
		case isStarter(name):
			argv = skipOptions(argv[1:])
		case isShell(name):
			s.shell(argv[1:], depth)
			return
		default:
			s.Commands = append(s.Commands, Command{Name: name, Args: argv[1:], Sudo: sudo})
			return
		}
	}
}

// shell reads the script of sh -c.
func (s *Script) shell(args []string, depth int) {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, "c") && i+1 < len(args) {
			s.read(args[i+1], depth+1)
			return
		}
	}
}

// programName is a program without its directory; "" if it is computed.
func programName(word string) string { return word[strings.LastIndexByte(word, '/')+1:] }

// skipOptions drops what stands between a starter and the program that it
// starts: options, their numbers, assignments.
func skipOptions(argv []string) []string {
	for len(argv) > 0 && (strings.IndexAny(argv[0], "-0123456789") == 0 || strings.Contains(argv[0], "=")) {
		argv = argv[1:]
	}
	return argv
}

func isStarter(name string) bool {
	switch name {
	case "env", "exec", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "command", "builtin":
		return true
	}
	return false
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh":
		return true
	}
	return false
}

// isQuestion tells whether a statement is a condition for what follows.
func isQuestion(st *syntax.Stmt) bool {
	if st.Negated {
		return true
	}
	switch c := st.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	case *syntax.CallExpr:
		switch argv := words(c.Args); {
		case len(argv) == 0:
			return false
		case argv[0] == "command" || argv[0] == "[":
			return true
		default:
			return strings.Contains(" test which type hash grep id getent ", " "+programName(argv[0])+" ")
		}
	case *syntax.BinaryCmd:
		return isQuestion(c.X) || isQuestion(c.Y)
	}
	return false
}

// endsScript tells whether a statement makes the whole script fail.
func endsScript(st *syntax.Stmt) bool {
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		argv := words(c.Args)
		return len(argv) > 0 && (argv[0] == "false" || argv[0] == "exit" && len(argv) > 1 && argv[1] != "0")
	case *syntax.Block:
		return len(c.Stmts) > 0 && endsScript(c.Stmts[len(c.Stmts)-1])
	}
	return false
}

func words(list []*syntax.Word) []string {
	argv := make([]string, len(list))
	for i, w := range list {
		argv[i] = literal(w)
	}
	return argv
}

// literal is the text of a word, or "" if the shell would compute any of it.
func literal(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape.Replace(p.Value))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			inner := literal(&syntax.Word{Parts: p.Parts})
			if inner == "" && len(p.Parts) > 0 {
				return ""
			}
			b.WriteString(inner)
		default:
			return ""
		}
	}
	return b.String()
}

var unescape = strings.NewReplacer("\\\\", "\\", "\\", "")
