package session_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// Failures show no path of the host to tenants; the owner, whose sessions have no
// account, sees all.
func TestHostPathsOfTasksAreNotTold(t *testing.T) {
	d := open(t, session.Limits{})
	d.ask(ann, "agent:main:main", "a", "fail below /srv/state")
	if rec := d.over(ann, "a"); rec.Problem != "failed with below [host path]" {
		t.Errorf("%q", rec.Problem)
	}
	d.ask(everybody, "agent:main:main", "b", "fail below /srv/state")
	if rec := d.over(everybody, "b"); rec.Problem != "failed with below /srv/state" {
		t.Errorf("%q", rec.Problem)
	}
}
