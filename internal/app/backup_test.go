package app_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/store"
)

// What docs/operations.md says to copy while a gateway serves is enough to go on
// elsewhere: runs, what they cost, the audit log and the id of the installation.
func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	withLiteLLM(t, s)
	withCaller(s)
	c, log := s.serveHere()
	done := finished(t, c, &api.RunRequest{GraphID: "caller", Message: "ask", Account: "acme"})
	eventually(t, "the end of the run is not in the log", func() bool { return len(log.of("run over", done.ID)) == 1 })
	if _, err := c.RunCalls(t.Context(), done.ID); err != nil { // the ledger is in the database
		t.Fatal(err)
	}
	backup := filepath.Join(s.dir, "backup")
	s.mkdir(backup)
	s.copyLive(backup)

	other := linuxSite(t)
	other.config = s.config
	other.env["LITELLM_MASTER_KEY"] = s.env["LITELLM_MASTER_KEY"]
	other.copyAll(backup, other.state)
	restored, _ := other.serveHere()
	if got, err := restored.Run(t.Context(), done.ID); err != nil || got.Text != done.Text || got.Bill.MicroUSD != done.Bill.MicroUSD {
		t.Errorf("%+v, %v", got, err)
	}
	if costs, err := restored.Costs(t.Context(), api.CostQuery{Account: "acme"}); err != nil || len(costs.Runs) != 1 || costs.Runs[0].MicroUSD != done.Bill.MicroUSD {
		t.Errorf("%+v, %v", costs, err)
	}
	if records, err := restored.Audit(t.Context(), api.AuditQuery{Run: done.ID, Kind: string(audit.Model)}); err != nil || len(records.Records) != 1 {
		t.Errorf("%+v, %v", records, err)
	}
	if whole, err := restored.VerifyAudit(t.Context()); err != nil || !whole.OK {
		t.Errorf("%+v, %v", whole, err)
	}
	if again := finished(t, restored, &api.RunRequest{GraphID: "caller", Message: "ask again", Account: "acme"}); again.Error != nil {
		t.Errorf("%+v", again.Error)
	}
}

// copyLive copies the state directory of a gateway that serves, as the document says:
// the database by SQLite itself, then the rest.
func (s *site) copyLive(to string) {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), filepath.Join(s.state, "atoll.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = db.ExecContext(context.WithoutCancel(s.t.Context()), "VACUUM INTO ?", filepath.Join(to, "atoll.db"))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"usage", "audit", "agents", "installation", "gateway.token"} {
		if _, err := os.Stat(filepath.Join(s.state, name)); err == nil { // an installation without sessions has no agents
			s.copyAll(filepath.Join(s.state, name), filepath.Join(to, name))
		}
	}
}

// copyAll copies a file or a directory with its modes.
func (s *site) copyAll(from, to string) {
	s.t.Helper()
	if out, err := exec.CommandContext(s.t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}
