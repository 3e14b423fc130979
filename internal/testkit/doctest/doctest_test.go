package doctest_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/doctest"
)

const sample = "# Title\n<!-- doctest: needs model -->\n\n```sh\necho one\n```\n" +
	"<!-- doctest: skip needs the moon -->\n```sh\nfalse\n```\n" +
	"<!-- doctest: as root -->\n```sh\necho root\n```\n" +
	"<!-- doctest: hidden\nword=two\n-->\n" +
	"```console\n$ echo $word three\ntwo …\n$ printf 'a\\nb\\nc\\n'\na\n…\nc\n```\n" +
	"```text\na drawing\n```\n"

// play runs the script of a document in a shell and compares its output.
func play(t *testing.T, text string, asRoot bool) error {
	t.Helper()
	doc, err := doctest.Parse("doc.md", text)
	if err != nil {
		return err
	}
	script, err := doc.Script(asRoot)
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-ec", script.Text).CombinedOutput()
	return script.Compare(string(out), err)
}

func TestDocumentsThatAreTrue(t *testing.T) {
	t.Parallel()
	for _, asRoot := range []bool{true, false} {
		if err := play(t, sample, asRoot); err != nil {
			t.Error(err)
		}
	}
	doc, err := doctest.Parse("doc.md", sample)
	if err != nil || len(doc.Needs) != 1 || doc.Needs[0] != "model" {
		t.Errorf("needs: %v, %v", doc.Needs, err)
	}
}

func TestDocumentsThatAreFalse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"a command fails":         {"```sh\ntrue\nfalse\n```\n", "doc.md:2: exit status 1"},
		"other output":            {"```console\n$ echo one\ntwo\n```\n", "doc.md:2: it printed"},
		"more output":             {"```console\n$ printf 'one\\ntwo\\n'\none\n```\n", "doc.md:2: it printed"},
		"output where none is":    {"```console\n$ echo one\n```\n", "doc.md:2: it printed"},
		"no error where one is":   {"```console\n$ echo error: x\nerror: x\n```\n", "doc.md:2: it printed"},
		"the script ends early":   {"```sh\nexit 0\n```\n```sh\ntrue\n```\n", "1 of 2 steps ran"},
		"no language":             {"```\natoll run\n```\n", "a block without a language"},
		"an unknown language":     {"```cobol\nSTOP RUN.\n```\n", "not known how to run"},
		"an unknown directive":    {"<!-- doctest: sometimes -->\n", "unknown directive"},
		"a skip without a reason": {"<!-- doctest: skip -->\n```sh\nfalse\n```\n", "unknown directive"},
		"a block without an end":  {"```sh\ntrue\n", "does not end"},
		"a comment without one":   {"<!-- doctest: hidden\ntrue\n", "does not end"},
		"output before a command": {"```console\none\n```\n", "begins with a command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := play(t, test.text, false); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A configuration is checked, and kept where its first line says so.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	const text = "```json5\n// conf/atoll.json5\n{}\n```\n```json5\n{a: 1}\n```\n"
	doc, err := doctest.Parse("doc.md", text)
	if err != nil {
		t.Fatal(err)
	}
	script, err := doc.Script(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mkdir -p conf\n", "cat >conf/atoll.json5 ", "atoll config check conf/atoll.json5\n", "atoll config check block-6.json5\n"} {
		if !strings.Contains(script.Text, want) {
			t.Errorf("no %q in:\n%s", want, script.Text)
		}
	}
	if err := script.Compare("", errors.New("killed")); err == nil {
		t.Error("a script that printed nothing passed")
	}
}
