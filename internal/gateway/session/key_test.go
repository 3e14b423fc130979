package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]session.Key{
		"":                             {Text: "agent:work:main", Agent: "work"},
		" main ":                       {Text: "agent:work:main", Agent: "work"},
		"MAIN":                         {Text: "agent:work:main", Agent: "work"},
		"global":                       {Text: "global", Agent: "work"},
		"Global":                       {Text: "global", Agent: "work"},
		"notes":                        {Text: "agent:work:notes", Agent: "work"},
		"agent:Main:main":              {Text: "agent:main:main", Agent: "main"},
		"AGENT:main:Notes":             {Text: "agent:main:notes", Agent: "main"},
		"agent:main:Acme:Run1":         {Text: "agent:main:Acme:Run1", Agent: "main", Account: "Acme"},
		"Acme:Run1":                    {Text: "agent:work:Acme:Run1", Agent: "work", Account: "Acme"},
		"agent:main:acme:a:b":          {Text: "agent:main:acme:a:b", Agent: "main", Account: "acme"},
		"agent:main:Telegram:Group:42": {Text: "agent:main:telegram:group:42", Agent: "main"},
		"agent:main:subagent:1-2":      {Text: "agent:main:subagent:1-2", Agent: "main"},
		"agent:My.Agent:x":             {Text: "agent:my-agent:x", Agent: "my-agent"},
	} {
		if key, err := session.ParseKey(text, "work"); err != nil || key != want {
			t.Errorf("%q: %+v, %v; want %+v", text, key, err, want)
		}
	}
	for _, text := range []string{
		"agent:", "agent:main", "agent:main:", "agent::x", "agent:main::x", "agent:main:acme:", "a b", "a\nb", "a\x00b", "a\u202eb", "\xff",
		"agent:main:agent:x", "agent:main:account:x", `agent:main:a"b:c`, "agent:main:a,b:c", "agent:main:ä:c", strings.Repeat("x", session.MaxKey+1),
	} {
		if key, err := session.ParseKey(text, "main"); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%q: %+v, %v", text, key, err)
		}
	}
}

// A key stays within its limits, and its canonical form is canonical.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"main", "global", "agent:main:a:b", "Agent:X:Telegram:ß", "a:b:c", "İ", "agent:main:ǅ"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := session.ParseKey(text, "main")
		if err != nil {
			return
		}
		if key.Text == "" || key.Agent == "" || len(key.Text) > session.MaxKey || strings.ContainsAny(key.Text, " \n\r\x00") {
			t.Fatalf("%q: %+v", text, key)
		}
		if key.Account != "" && !strings.HasPrefix(key.Text, "agent:"+key.Agent+":"+key.Account+":") {
			t.Fatalf("%q: %+v", text, key)
		}
		if again, err := session.ParseKey(key.Text, "other"); err != nil || key.Text != "global" && again != key {
			t.Fatalf("%q: %+v, then %+v, %v", text, key, again, err)
		}
	})
}
