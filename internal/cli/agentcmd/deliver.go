package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// checkBranch reads --branch.
func (o *options) checkBranch(cmd *cobra.Command) (err error) {
	if o.branch == "" {
		return nil
	}
	if o.access != "" && config.Access(o.access) != config.AccessOverlay {
		return console.Usage(cmd, errors.New("--branch takes commits of an overlay: leave --access out"))
	}
	if o.key, err = branch.Parse(o.branch); err != nil {
		return console.Usage(cmd, err)
	}
	return nil
}

// deliver gives the commits to the relay, if --branch names a branch. Those of an
// agent that failed are kept until a person pushes them.
func (s *start) deliver(ctx context.Context, failure error) error {
	if s.key == "" {
		return nil
	}
	done := s.Progress("giving the commits to the relay")
	defer done()
	note, err := s.app.Sync.Deliver(ctx, s.app.Commits, &api.SyncSubject{Directory: s.dir.Path}, relay.TakeRequest{
		Run: cmp.Or(s.run, execute.NewRunID()), Work: relay.Work{Key: s.key}, Held: failure != nil, About: relay.About{Title: s.task, Model: s.model, Variant: s.preset.ID},
	})
	if errors.Is(err, take.ErrNothing) {
		note, err = "no commits", nil
	}
	if err != nil {
		return fmt.Errorf("give the commits to the relay: %w", err)
	}
	s.report.Branch = &delivered{s.key.Branch(), note}
	return nil
}

// delivered is what became of the commits.
type delivered struct {
	Name string `json:"name"`
	Note string `json:"note"`
}

// sayBranch says what became of the commits.
func (s *start) sayBranch() {
	if b := s.report.Branch; b != nil {
		fmt.Fprintf(s.Err, "branch   %s: %s\n", b.Name, console.Printable(b.Note))
	}
}
