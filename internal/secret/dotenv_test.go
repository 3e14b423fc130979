package secret_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/secret"
)

func TestParseEnv(t *testing.T) {
	const file = "# tokens\n\nGITHUB_TOKEN=ghp_0123456789\r\nexport NPM=\"npm_\\\"x\\\\y\" # of the team\n SINGLE = 'a \\ b#c' \nBARE=x#y #comment\nEMPTY=\nDOLLAR=a$b\n"
	all, err := secret.ParseEnv([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range all {
		got = append(got, fmt.Sprintf("%d %s=%s", v.Line, v.Name, v.Text))
	}
	want := []string{"3 GITHUB_TOKEN=ghp_0123456789", `4 NPM=npm_"x\y`, `5 SINGLE=a \ b#c`, "6 BARE=x#y", "7 EMPTY=", "8 DOLLAR=a$b"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]string{
		"A=1\nhunter2":           "line 2 is not NAME=VALUE",
		"hunter2 hunter2=x":      "line 1 is not NAME=VALUE",
		"1A=hunter2":             "line 1 is not NAME=VALUE",
		"\n\nA=\"hunter2\nB=1\"": "line 3: the quotation does not end",
	} {
		if _, err := secret.ParseEnv([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParseEnv: no error repeats what is in a file.
func FuzzParseEnv(f *testing.F) {
	f.Add("A=b\nC='d")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := secret.ParseEnv([]byte(text))
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Error(err)
		}
		for _, v := range all {
			if v.Name == "" || v.Line < 1 || strings.ContainsAny(v.Name, "=\n ") {
				t.Errorf("%+v", v)
			}
		}
	})
}
