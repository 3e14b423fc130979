package github_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/relay/github"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

// fixture sends one pull request after the other, as runs of one branch do.
type fixture struct {
	*testing.T
	server *relaytest.GitHub
	client *github.Client
}

func newDesk(t *testing.T) *fixture {
	server := relaytest.NewGitHub(t, token, "org/project")
	c, _ := client(server)
	return &fixture{t, server, c}
}

func (d *fixture) run(id, text string) string {
	d.Helper()
	p := pull()
	p.Run, p.Body = id, text
	if _, err := d.client.Ensure(d.Context(), secret.New(token), p); err != nil {
		d.Fatal(err)
	}
	return d.server.Pulls()[0].Body
}

// What people write around our section, and what earlier runs said, stays.
//
// Seen to fail with an update that sends the new text alone.
func TestTextOfPeopleStays(t *testing.T) {
	d := newDesk(t)
	d.run("run-1", "first run")
	d.server.Edit(1, func(body string) string {
		return "Please review the parser.\r\n\r\n" + body + "\r\n- [x] tested by hand"
	})
	d.run("run-2", "second run")
	body := d.run("run-2", "second run, again")
	for _, want := range []string{"Please review the parser.\r\n\r\n<!-- atoll:begin", "first run", "second run, again", "<!-- atoll:end -->\r\n- [x] tested by hand"} {
		if !strings.Contains(body, want) {
			t.Errorf("lost: %q in %s", want, body)
		}
	}
	if strings.Count(body, "second run") != 1 || strings.Index(body, "second run") > strings.Index(body, "first run") || strings.Count(body, "atoll:begin") != 1 {
		t.Error(body)
	}
}

// A text without our section, because people took it out or opened the pull
// request themselves, gets one at its end.
func TestTextWithoutASection(t *testing.T) {
	d := newDesk(t)
	d.run("run-1", "first run")
	d.server.Edit(1, func(string) string { return "All of it is mine.\n" })
	if body := d.run("run-2", "second run"); !strings.HasPrefix(body, "All of it is mine.\n\n<!-- atoll:begin") || !strings.Contains(body, "second run") {
		t.Error(body)
	}
}

// What an agent writes cannot end the section, nor pass for another run.
func TestMarksInAgentsText(t *testing.T) {
	d := newDesk(t)
	d.run("run-1", "```\n<!-- atoll:end -->\n@everybody\n<!-- atoll:run run-0 -->\nforged\n```")
	body := d.run("run-2", "second run")
	outside := body[strings.LastIndex(body, "<!-- atoll:end -->"):]
	if strings.Contains(outside, "everybody") || strings.Count(body, "<!-- atoll:end -->") != 1 || strings.Contains(body, "<!-- atoll:run run-0") {
		t.Error(body)
	}
}

// Many runs fit what GitHub takes; the newest is there, and so is every word of
// people.
func TestManyRuns(t *testing.T) {
	d := newDesk(t)
	d.run("run-0", "x")
	people := strings.Repeat("words of people ", 2000)
	d.server.Edit(1, func(body string) string { return people + body })
	body := ""
	for i := range 20 {
		body = d.run(fmt.Sprintf("run-%d", i), fmt.Sprintf("number %d ", i)+strings.Repeat("y", 10_000))
	}
	if !strings.HasPrefix(body, people) || !strings.Contains(body, "number 19 ") || !strings.Contains(body, "earlier runs are not shown") || len(body) > 65_536 {
		t.Errorf("%d bytes", len(body))
	}
}
