package publicerr_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/publicerr"
)

// Paths of the host are left out wherever they are in a message; those that the
// caller knows, names of models and addresses stay.
func TestText(t *testing.T) {
	for message, want := range map[string]string{
		"nothing to hide": "nothing to hide",
		"database /home/ann/.atoll/atoll.db: disk I/O error":         "database [host path]: disk I/O error",
		"open /var/lib/atoll/x: no such file":                        "open [host path]: no such file",
		"Path escapes sandbox root (/srv/state/sandboxes/a b)":       "Path escapes sandbox root ([host path] b)",
		`stat "/root/secret"`:                                        `stat "[host path]"`,
		"below ~/.atoll/images":                                      "below [host path]",
		"/etc/passwd.":                                               "[host path].",
		"dir=/srv/x,file=/srv/y":                                     "dir=[host path],file=[host path]",
		"1 MiB are free below /state; a run needs 256":               "1 MiB are free below [host path]; a run needs 256",
		"/workspace/notes.md is a directory":                         "/workspace/notes.md is a directory",
		"/workspace/../etc/shadow":                                   "[host path]",
		"/workspaces/other":                                          "[host path]",
		"model not found: openai/gpt-5 (choose one of \"openai/x\")": "model not found: openai/gpt-5 (choose one of \"openai/x\")",
		"see https://example.com/a/b":                                "see https://example.com/a/b",
		"open //etc/passwd":                                          "open [host path]",
		"/workspace/a:/state/secret":                                 "[host path]",
		"ask GET /api/v1/sessions":                                   "ask GET /api/v1/sessions",
		"unix:///run/user/1000/docker.sock does not answer":          "unix://[host path] does not answer",
	} {
		if got := publicerr.Text(message); got != want {
			t.Errorf("%q\n got %q\nwant %q", message, got, want)
		}
	}
}

// However a message is made, no path below the state directory is left in it.
func FuzzText(f *testing.F) {
	f.Add("open ", ": no such file")
	f.Add("(", ")")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.HasSuffix(before, "://") || before != "" && !strings.ContainsAny(before[len(before)-1:], " \t\n\"'`(=,:[<") {
			t.Skip("the path is part of a longer word")
		}
		if got := publicerr.Text(before + "/state/secret" + after); strings.Contains(got, "/state/secret") {
			t.Errorf("%q", got)
		}
	})
}
