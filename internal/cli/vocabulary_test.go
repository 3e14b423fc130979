package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/atoll-run/atoll/internal/cli/console"
)

const (
	// vocabularyFile has the meaning of every flag and the words that say it.
	vocabularyFile = "testdata/flags.txt"
	flagsDocument  = "../../docs/flags.md"
)

var update = flag.Bool("update", false, "write the table of flags anew")

// usedFlag is a flag of a verb.
type usedFlag struct {
	verb string
	*pflag.Flag
}

// visibleFlags are the flags of every verb that help shows.
func visibleFlags() (all []usedFlag) {
	e := console.NewEnv(&console.Terminal{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, In: &bytes.Buffer{}, Getenv: func(string) string { return "" }})
	eachCommand(newRootCommand(e, ""), func(cmd *cobra.Command) {
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				all = append(all, usedFlag{strings.TrimPrefix(cmd.CommandPath(), "atoll "), f})
			}
		})
	})
	return all
}

// eachCommand visits the commands that people see, those of cobra itself left out.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.Hidden || cmd.Name() == "completion" {
		return
	}
	visit(cmd)
	for _, child := range cmd.Commands() {
		eachCommand(child, visit)
	}
}

// meaning is what a spelling stands for, and every text that help may say of it.
type meaning struct {
	text   string
	usages []string
}

// readVocabulary reads the table: a line "spelling: meaning", below it, each behind
// a tab, the texts of help.
func readVocabulary(t *testing.T) map[string]*meaning {
	t.Helper()
	data, err := os.ReadFile(vocabularyFile)
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]*meaning{}
	var last *meaning
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if usage, ok := strings.CutPrefix(line, "\t"); ok {
			last.usages = append(last.usages, usage)
			continue
		}
		name, text, ok := strings.Cut(line, ": ")
		if !ok || table[name] != nil {
			t.Fatalf("%s: %q", vocabularyFile, line)
		}
		last = &meaning{text: text}
		table[name] = last
	}
	return table
}

func TestEveryFlagHasOneMeaningAndOneSpelling(t *testing.T) {
	table, used := readVocabulary(t), visibleFlags()
	for _, problem := range vocabularyProblems(table, used) {
		t.Error(problem)
	}
	checkFlagsDocument(t, table, used)
}

// vocabularyProblems names the flags that break the rule.
func vocabularyProblems(table map[string]*meaning, used []usedFlag) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	kinds, shorts, texts, meanings := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	one := func(of map[string]string, key, value, what string) {
		if before := cmp.Or(of[key], value); before != value {
			say("%s %q is of %s and of %s", what, key, before, value)
		}
		of[key] = value
	}
	for name, m := range table {
		one(meanings, m.text, "--"+name, "the meaning")
	}
	for _, f := range used {
		m := table[f.Name]
		if m == nil {
			say("%s: --%s is not in %s: is there a spelling for what it means?", f.verb, f.Name, vocabularyFile)
			continue
		}
		if !slices.Contains(m.usages, f.Usage) {
			say("%s: --%s means %q; does it here? Then add the text to %s: %s", f.verb, f.Name, m.text, vocabularyFile, f.Usage)
		}
		one(kinds, "--"+f.Name, valueKind(f.Flag), "the type of")
		one(texts, f.Usage, "--"+f.Name, "the text")
		if f.Shorthand != "" {
			one(shorts, "-"+f.Shorthand, "--"+f.Name, "the short form")
		}
	}
	return problems
}

// valueKind is the kind of value that a flag takes, however often.
func valueKind(f *pflag.Flag) string {
	switch kind := f.Value.Type(); kind {
	case "stringSlice", "stringArray":
		return "string"
	default:
		return kind
	}
}

// checkFlagsDocument compares the document with the verbs.
func checkFlagsDocument(t *testing.T, table map[string]*meaning, used []usedFlag) {
	verbs, spelled := map[string][]string{}, map[string]string{}
	for _, f := range used {
		verbs[f.Name] = append(verbs[f.Name], f.verb)
		if f.Shorthand != "" {
			spelled[f.Name] = ", `-" + f.Shorthand + "`"
		}
	}
	var b strings.Builder
	b.WriteString("# Flags\n\nOne spelling for one meaning, in every verb. `--help` of a verb says what a flag does there.\n\n" +
		"Times are seconds (`90`) or have units (`90s`, `1m30s`, `2d`); sizes are a number and a unit (`512m`, `2g`).\n\n" +
		"| flag | meaning | verbs |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if len(verbs[name]) == 0 {
			t.Errorf("%s: no verb has --%s", vocabularyFile, name)
			continue
		}
		list := strings.Join(slices.Compact(slices.Sorted(slices.Values(verbs[name]))), ", ")
		if list == "atoll" {
			list = "all"
		}
		fmt.Fprintf(&b, "| `--%s`%s | %s | %s |\n", name, spelled[name], table[name].text, list)
	}
	if *update {
		if err := os.WriteFile(flagsDocument, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(flagsDocument); err != nil || string(have) != b.String() {
		t.Errorf("%s is not of these verbs (%v): go test ./internal/cli -run Flag -update", flagsDocument, err)
	}
}

func TestVocabularyRefusesWhatIsSaidTwice(t *testing.T) {
	flagOf := func(verb, name, short, kind, usage string) usedFlag {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		if kind == "int" {
			set.IntP(name, short, 0, usage)
		} else {
			set.StringP(name, short, "", usage)
		}
		return usedFlag{verb, set.Lookup(name)}
	}
	table := map[string]*meaning{"limit": {"most rows", []string{"at most"}}, "lines": {"most rows", []string{"at most"}}, "scope": {"who shares", []string{"sharing"}}}
	for name, used := range map[string][]usedFlag{
		"two spellings of one text":      {flagOf("a", "limit", "", "", "at most"), flagOf("b", "lines", "", "", "at most")},
		"another text of one spelling":   {flagOf("a", "scope", "", "", "what a token allows")},
		"two types of one spelling":      {flagOf("a", "scope", "", "", "sharing"), flagOf("b", "scope", "", "int", "sharing")},
		"one short form of two spelling": {flagOf("a", "scope", "s", "", "sharing"), flagOf("b", "limit", "s", "", "at most")},
		"an unknown spelling":            {flagOf("a", "other", "", "", "x")},
	} {
		if got := vocabularyProblems(table, used); len(got) < 2 { // one is always that the table has a meaning twice
			t.Errorf("%s: %q", name, got)
		}
	}
}
