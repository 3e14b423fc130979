package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// inlineCommand matches a command line of atoll in running text.
var inlineCommand = regexp.MustCompile("`atoll ([^`\n]+)`")

// Every verb and flag that a document names in running text exists. What
// documents show in blocks is run by TestDocuments of cmd/atoll.
func TestDocumentsNameVerbsAndFlagsThatExist(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../../README.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range inlineCommand.FindAllStringSubmatch(string(text), -1) {
			found++
			if problem := unknownWord(match[1]); problem != "" {
				t.Errorf("%s: atoll %s: %s", file, match[1], problem)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
}

// unknownWord returns the verb or flag of a command line that does not exist.
func unknownWord(line string) string {
	words, _, _ := strings.Cut(line, " -- ")
	root := newRootCommand(console.NewEnv(console.System()), "")
	cmd, rest, err := root.Find(strings.Fields(words))
	if err != nil {
		return err.Error()
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !isPlaceholder(rest[0]) && !strings.HasPrefix(rest[0], "-") {
		return "no verb " + rest[0]
	}
	for _, word := range rest {
		if name, ok := strings.CutPrefix(strings.Trim(word, "[],"), "--"); ok && name != "" && !hasFlag(cmd, name) {
			return "no flag --" + name
		}
	}
	return ""
}

// isPlaceholder tells whether a word stands for a verb of the reader's choice.
func isPlaceholder(word string) bool { return word == "…" || word == strings.ToUpper(word) }

func hasFlag(cmd *cobra.Command, name string) bool {
	name, _, _ = strings.Cut(name, "=")
	return name == "help" || name == "version" || cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil
}

func TestUnknownWordsAreNoticed(t *testing.T) {
	for line, want := range map[string]string{
		"run --rm -- rm --foo": "", "runs …": "", "runs start --variant sandbox:openclaw": "", "sandbox explain [--json]": "",
		"fly": "no verb fly", "runs fly": "no verb fly", "run --fly": "no flag --fly",
	} {
		if got := unknownWord(line); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("atoll %s: %q, want %q", line, got, want)
		}
	}
}
