package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// MaxCommand is the length in bytes of the longest command that is read.
const MaxCommand = 64 << 10

// Plain returns the words of a command if it is one simple command of literal
// words, and otherwise an *Error that says why it is not. Run the words as they
// are: no shell may see them again.
func Plain(command string) (argv []string, err error) {
	if err := scan(command); err != nil {
		return nil, err
	}
	argv, err = words(command, syntax.LangPOSIX)
	if err != nil {
		return nil, err
	}
	again, err := words(command, syntax.LangBash)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(argv, again) {
		return nil, refuse(ErrDisagree, 0)
	}
	if err := checkProgram(argv[0]); err != nil {
		return nil, err
	}
	return argv, nil
}

// words parses the command in one dialect and takes the only shape apart that
// is wanted: a file of one statement that is a call with literal arguments.
func words(command string, dialect syntax.LangVariant) ([]string, error) {
	parser := syntax.NewParser(syntax.Variant(dialect), syntax.KeepComments(true))
	file, err := parser.Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil, refuse(ErrNotSimple, 0)
	}
	call, ok := onlyCall(file.Stmts[0])
	if !ok {
		return nil, refuse(ErrNotSimple, 0)
	}
	argv := make([]string, 0, len(call.Args))
	for _, word := range call.Args {
		text, ok := literal(word.Parts)
		if !ok {
			return nil, refuse(ErrNotSimple, int(word.Pos().Offset()))
		}
		argv = append(argv, text)
	}
	return argv, nil
}

// onlyCall returns the call that a statement consists of, if that is all there
// is to it.
func onlyCall(s *syntax.Stmt) (*syntax.CallExpr, bool) {
	more := s.Negated || s.Background || s.Coprocess || s.Disown ||
		s.Semicolon.IsValid() || len(s.Redirs) > 0 || len(s.Comments) > 0
	call, ok := s.Cmd.(*syntax.CallExpr)
	return call, ok && !more && len(call.Assigns) == 0 && len(call.Args) > 0
}

// literal is the text of a word after quote removal; false if the shell would
// compute any of it.
func literal(parts []syntax.WordPart) (string, bool) {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			text, ok := doubleQuoted(p)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		default:
			return "", false
		}
	}
	return b.String(), true
}

func doubleQuoted(q *syntax.DblQuoted) (string, bool) {
	var b strings.Builder
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			return "", false
		}
		b.WriteString(unescape(lit.Value, escapable))
	}
	return b.String(), !q.Dollar
}

// escapable are the characters that a backslash escapes in double quotes;
// before any other it stands for itself.
const escapable = "$`\"\\"

// unescape removes the backslashes that escape one of the given characters, or
// any character if none are given.
func unescape(s, only string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// checkProgram looks at the first word without its quotes: look-alike letters
// and invisible spaces have no place in the name of a program, and a builtin is
// one however it is quoted.
func checkProgram(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return refuse(ErrName, 0)
	}
	if slices.Contains(builtins(), name) {
		return refuse(ErrBuiltin, 0)
	}
	return nil
}

// builtins are the commands that change the shell which runs them, or ask it
// about itself. Those that exist as programs too (echo, test, …) are not here.
func builtins() []string {
	return []string{
		".", ":", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt", "continue",
		"declare", "dirs", "disown", "enable", "eval", "exec", "exit", "export", "fc", "fg", "getopts", "hash", "help", "history",
		"jobs", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "return", "set", "shift",
		"shopt", "source", "suspend", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
	}
}
