package shell_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/policy/shell"
)

func TestPlainWords(t *testing.T) {
	cases := map[string][]string{
		`gh`:                                {"gh"},
		"  gh \t pr   list ":                {"gh", "pr", "list"},
		`\gh`:                               {"gh"}, // the escape only keeps aliases away, and argv knows none
		`"gh"`:                              {"gh"},
		`g''h`:                              {"gh"},
		`g"h"`:                              {"gh"},
		`gh ''`:                             {"gh", ""},
		`gh "" x`:                           {"gh", "", "x"},
		`gh a\ b`:                           {"gh", "a b"},
		`gh \\ \" \'`:                       {"gh", `\`, `"`, `'`},
		`gh 'a  b' "c  d"`:                  {"gh", "a  b", "c  d"},
		`gh "\$HOME \` + "`" + `x \\ \n"`:   {"gh", "$HOME `x \\ \\n"},
		`gh '$(id)' '` + "`id`" + `' 'a;b'`: {"gh", "$(id)", "`id`", "a;b"},
		`gh '*' "?" \[x]`:                   {"gh", "*", "?", "[x]"},
		`gh pr view --jq '.[] | .x != 1'`:   {"gh", "pr", "view", "--jq", ".[] | .x != 1"},
		`gh api repos/{owner}/{repo}`:       {"gh", "api", "repos/{owner}/{repo}"},
		`gh issue create -t "Done!"`:        {"gh", "issue", "create", "-t", "Done!"},
		`git fetch origin HEAD~1`:           {"git", "fetch", "origin", "HEAD~1"},
		`git fetch a..b x,y`:                {"git", "fetch", "a..b", "x,y"},
		`gh x#y`:                            {"gh", "x#y"},
		`gh a=b --c=d`:                      {"gh", "a=b", "--c=d"},
		`gh if then { } fi`:                 {"gh", "if", "then", "{", "}", "fi"},
		`gh größe "naïve ☃"`:                {"gh", "größe", "naïve ☃"},
		`/usr/bin/gh x`:                     {"/usr/bin/gh", "x"},
		`"if" x`:                            {"if", "x"}, // quoted, it is a program of that name
		`"A"=b`:                             {"A=b"},
		`gh a]b a^b a%b a@b a+b`:            {"gh", "a]b", "a^b", "a%b", "a@b", "a+b"},
		`gh '~' "~" \~ a~`:                  {"gh", "~", "~", "~", "a~"},
		`gh '{a,b}' \{a,b}`:                 {"gh", "{a,b}", "{a,b}"},
		`gh --body "it's"`:                  {"gh", "--body", "it's"},
	}
	for command, want := range cases {
		t.Run(command, func(t *testing.T) {
			got, err := shell.Plain(command)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			checkAgainstShells(t, trap(t), []string{command})
		})
	}
}

// bypasses are commands that begin like an allowed one, or look like it, and do
// something else.
func bypasses() map[string]error {
	return map[string]error{
		"":                                      shell.ErrEmpty,
		" \t ":                                  shell.ErrEmpty,
		`gh;id`:                                 shell.ErrList,
		`gh ; id`:                               shell.ErrList,
		`gh ;`:                                  shell.ErrList,
		`gh x;;`:                                shell.ErrList,
		`gh && id`:                              shell.ErrList,
		`gh || id`:                              shell.ErrList,
		`gh & id`:                               shell.ErrBackground,
		`gh &`:                                  shell.ErrBackground,
		`gh|id`:                                 shell.ErrPipeline,
		`gh |& id`:                              shell.ErrPipeline,
		"gh\nid":                                shell.ErrControl,
		"gh\r\nid":                              shell.ErrControl,
		"gh\rid":                                shell.ErrControl,
		"gh \\\nid":                             shell.ErrControl,
		"gh 'a\nb'":                             shell.ErrControl,
		"gh\x00id":                              shell.ErrControl,
		"gh \x1b[2J":                            shell.ErrControl,
		"gh \u0085id":                           shell.ErrControl,
		"gh \u2028id":                           shell.ErrControl,
		"gh \v id":                              shell.ErrControl,
		"gh \x7f":                               shell.ErrControl,
		"gh \xff":                               shell.ErrNotUTF8,
		"gh \xc0\xaf":                           shell.ErrNotUTF8,
		`gh $(id)`:                              shell.ErrSubstitution,
		`gh "$(id)"`:                            shell.ErrSubstitution,
		"gh `id`":                               shell.ErrSubstitution,
		"gh \"`id`\"":                           shell.ErrSubstitution,
		"`echo gh` x":                           shell.ErrSubstitution,
		`gh <(id)`:                              shell.ErrSubstitution,
		`gh >(id)`:                              shell.ErrSubstitution,
		`gh $((1+1))`:                           shell.ErrExpansion,
		`gh ${IFS}x`:                            shell.ErrExpansion,
		`gh$IFS-x`:                              shell.ErrExpansion,
		`gh $HOME`:                              shell.ErrExpansion,
		`gh "$HOME"`:                            shell.ErrExpansion,
		`gh "\\$HOME"`:                          shell.ErrExpansion,
		`gh \\$HOME`:                            shell.ErrExpansion,
		`$'gh'`:                                 shell.ErrExpansion,
		`gh $'\n'id`:                            shell.ErrExpansion,
		`$"gh"`:                                 shell.ErrExpansion,
		`gh $`:                                  shell.ErrExpansion,
		`gh "5$"`:                               shell.ErrExpansion,
		`gh $[1+1]`:                             shell.ErrExpansion,
		`gh >x`:                                 shell.ErrRedirection,
		`gh 2>&1`:                               shell.ErrRedirection,
		`gh &>x`:                                shell.ErrRedirection,
		`>x gh`:                                 shell.ErrRedirection,
		`gh <x`:                                 shell.ErrRedirection,
		`gh <<<x`:                               shell.ErrRedirection,
		`gh <<EOF`:                              shell.ErrRedirection,
		`A=b gh`:                                shell.ErrAssignment,
		`A=b`:                                   shell.ErrAssignment,
		`PATH=/tmp gh x`:                        shell.ErrAssignment,
		`A+=b gh`:                               shell.ErrAssignment,
		`A[0]=b gh`:                             shell.ErrAssignment,
		`LD_PRELOAD='x y' gh`:                   shell.ErrAssignment,
		`! gh`:                                  shell.ErrNegation,
		`!gh`:                                   shell.ErrHistory,
		`gh !!`:                                 shell.ErrHistory,
		`{ gh; }`:                               shell.ErrReserved,
		`{ gh`:                                  shell.ErrReserved,
		`[[ gh ]]`:                              shell.ErrReserved,
		`if gh`:                                 shell.ErrReserved,
		`time gh`:                               shell.ErrReserved,
		`coproc gh`:                             shell.ErrReserved,
		`function gh`:                           shell.ErrReserved,
		`gh() { id; }`:                          shell.ErrFunction,
		`gh ( ) id`:                             shell.ErrFunction,
		`(gh)`:                                  shell.ErrSubshell,
		`((gh))`:                                shell.ErrSubshell,
		`gh @(a|b)`:                             shell.ErrSubshell,
		`gh a=(b)`:                              shell.ErrSubshell,
		`gh #x`:                                 shell.ErrComment,
		`#gh`:                                   shell.ErrComment,
		`gh *`:                                  shell.ErrGlob,
		`g? x`:                                  shell.ErrGlob,
		`g[h] x`:                                shell.ErrGlob,
		`gh {a,b}`:                              shell.ErrBrace,
		`{gh,id}`:                               shell.ErrBrace,
		`gh {1..9}`:                             shell.ErrBrace,
		`gh {"a",b}`:                            shell.ErrBrace,
		`~/gh`:                                  shell.ErrTilde,
		`gh ~root`:                              shell.ErrTilde,
		`gh a=~/x`:                              shell.ErrTilde,
		`gh a=b:~/x`:                            shell.ErrTilde,
		`gh ''~/x`:                              shell.ErrTilde,
		`gh 'x`:                                 shell.ErrQuote,
		`gh "x`:                                 shell.ErrQuote,
		`gh "x\"`:                               shell.ErrQuote,
		`gh x\`:                                 shell.ErrEscape,
		`eval gh`:                               shell.ErrBuiltin,
		`. gh`:                                  shell.ErrBuiltin,
		`exec gh`:                               shell.ErrBuiltin,
		`"eval" gh`:                             shell.ErrBuiltin,
		`\command gh`:                           shell.ErrBuiltin,
		`export A=b`:                            shell.ErrBuiltin,
		"gh\u00a0pr":                            shell.ErrName, // no-break space: part of the word
		"\u00a0gh":                              shell.ErrName,
		"g\u200bh":                              shell.ErrName, // zero-width space
		"\u202egh":                              shell.ErrName, // right-to-left override
		"\uff47\uff48":                          shell.ErrName, // full-width gh
		"\u0261h":                               shell.ErrName, // script g
		"g\u04bb":                               shell.ErrName, // Cyrillic shha
		"\ufeffgh":                              shell.ErrName, // byte order mark
		`''`:                                    shell.ErrName,
		`"g h"`:                                 shell.ErrName,
		strings.Repeat("x", shell.MaxCommand+1): shell.ErrTooLong,
	}
}

func TestPlainRefusesBypasses(t *testing.T) {
	for command, want := range bypasses() {
		t.Run(command[:min(len(command), 40)], func(t *testing.T) {
			argv, err := shell.Plain(command)
			if !errors.Is(err, want) {
				t.Errorf("Plain = %q, %v; want an error that %v", argv, err, want)
			}
		})
	}
	if n := len(bypasses()); n < 30 {
		t.Errorf("only %d bypasses", n)
	}
}

func TestPlainSaysWhere(t *testing.T) {
	_, err := shell.Plain(`gh 'a b' | id`)
	e, ok := errors.AsType[*shell.Error](err)
	if !ok || e.Offset != 9 || e.Error() != "command is a pipeline (at byte 9)" {
		t.Errorf("got %v", err)
	}
}

func TestPlainTakesTheLongest(t *testing.T) {
	command := "gh " + strings.Repeat("x", shell.MaxCommand-3)
	argv, err := shell.Plain(command)
	if err != nil || len(argv) != 2 || len(argv[1]) != shell.MaxCommand-3 {
		t.Errorf("%d words, %v", len(argv), err)
	}
}

// TestNestingNeverReachesTheParser is about memory: 64 KiB of open brackets
// cost a recursive parser half a gigabyte of stack. A parser's refusal would be
// ErrNotSimple.
func TestNestingNeverReachesTheParser(t *testing.T) {
	for _, unit := range []string{
		"(", "((", "$(", `"$(`, "`", "${a:-", "$((", "{ ", "if ", "while ", "! ", "a|", "a&&", "a;", "<(", "f()", "case a in a) ",
		"a[", "a=(", "a[a]=", "@(", "[[ ( ", "time ", "coproc ", "function ", "a<<a ", "let a[", "for a in ", "select a in ", "until ",
	} {
		_, err := shell.Plain(strings.Repeat(unit, shell.MaxCommand/len(unit)))
		if err == nil || errors.Is(err, shell.ErrNotSimple) {
			t.Errorf("%q repeated: %v", unit, err)
		}
	}
}
