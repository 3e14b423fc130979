package take

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay"
)

// Request says what to take, and where to.
type Request struct {
	Branch string // of the host; "" chooses a name by the agent's branch
	From   string // a branch inside; "" is what is checked out there
	// Head is the commit that the person saw; "" takes what is there. Approved and
	// Override need it.
	Head     string
	Approved bool // findings that need approval are approved
	// Override is why secrets that were found are taken nevertheless; "" takes none.
	Override string
	Unsigned bool // do not sign, though the person's configuration says so
}

// Taken is what became of the commits.
type Taken struct {
	Branch  string   `json:"branch"` // of the host
	Ref     string   `json:"ref"`    // that keeps the commits
	Head    string   `json:"head"`   // the host's last commit
	Agent   string   `json:"agent"`  // the agent's last commit; the same if nothing was signed
	Commits int      `json:"commits"`
	Created bool     `json:"created"` // the branch is new
	Signed  bool     `json:"signed"`
	Notes   []string `json:"notes,omitempty"`
}

// The reasons why commits are not taken. Those of ErrCheckedOut and ErrDiverged
// are kept in the host's repository below refs/atoll/.
var (
	ErrNothing    = errors.New("there are no commits to take")
	ErrCheckedOut = errors.New("the branch is checked out")
	ErrDiverged   = errors.New("the branch has commits that the agent's has not")
)

// Refused is the error of commits that the content policy does not let pass.
type Refused struct{ Offer *Offer }

func (r *Refused) Error() string {
	f := r.Offer.Report.Findings[0]
	return fmt.Sprintf("the commits are not taken, %d findings: %s", len(r.Offer.Report.Findings), f.String())
}

// Take brings the agent's commits into the host's repository and makes or
// fast-forwards a branch. Work trees and branches that are checked out stay as
// they are.
func (w *Workspace) Take(ctx context.Context, r Request) (*Taken, error) {
	if r.Branch != "" {
		if err := checkBranch(r.Branch); err != nil {
			return nil, err
		}
	}
	release, err := w.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	o, err := w.offer(ctx, r.From)
	if err != nil {
		return nil, err
	}
	if err := o.permit(r); err != nil {
		return nil, err
	}
	t := &Taken{Head: o.Head, Agent: o.Head, Commits: len(o.Commits)}
	if err := w.signAll(ctx, o, r, t); err != nil {
		return nil, err
	}
	return t, w.store(ctx, o, r, t)
}

// permit refuses what the person did not see, or the policy does not let pass.
func (o *Offer) permit(r Request) error {
	switch {
	case o.Report != nil && o.Verdict == contentpolicy.Blocked && !o.overridden(r):
		return &Refused{o}
	case len(o.Commits) == 0:
		return ErrNothing
	case r.Head != "" && r.Head != o.Head:
		return errhint.With(ErrChanged, "`atoll sync commits` shows what there is now")
	case o.Verdict != "" && (!r.Approved || r.Head == "") && !o.overridden(r):
		return &Refused{o}
	}
	return nil
}

// overridden reports whether a person took responsibility for every secret that
// was found, by a reason and the commit. Other blocked findings stay.
func (o *Offer) overridden(r Request) bool {
	for _, f := range o.Report.Findings {
		if f.Verdict == contentpolicy.Blocked && f.Rule != "secret" || f.Verdict == contentpolicy.Approval && !r.Approved {
			return false
		}
	}
	return r.Override != "" && r.Head != "" && !o.Report.Truncated
}

// store adds the objects and the refs.
func (w *Workspace) store(ctx context.Context, o *Offer, r Request, t *Taken) error {
	var err error
	if t.Branch, err = w.chooseBranch(o, r); err != nil {
		return err
	}
	t.Ref = w.keptRef(t.Branch)
	refs, err := w.Checkout.Refs()
	if err != nil {
		return err
	}
	to, err := w.Checkout.Writer()
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // nothing is written by closing a directory
	if err := relay.AddPack(ctx, to, o.repo, t.Head, o.host...); err != nil {
		return fmt.Errorf("add the commits to %s: %w", w.Checkout.Top, err)
	}
	if err := to.MoveRef(t.Ref, t.Head, refs[t.Ref]); err != nil {
		return fmt.Errorf("add %s to %s: %w", t.Ref, w.Checkout.Top, err)
	}
	return w.moveBranch(ctx, o, t, to, branchState{refs[heads+t.Branch], refs[t.Ref]})
}

// branchState is where a branch of the host and what was last taken for it are.
type branchState struct{ now, taken string }

// moveBranch makes the branch, or moves it if nothing of the person is lost.
func (w *Workspace) moveBranch(ctx context.Context, o *Offer, t *Taken, to *checkout.Writer, at branchState) error {
	used, err := w.Checkout.UsedIn(heads + t.Branch)
	if err != nil {
		return err
	}
	forward := at.now == ""
	if !forward {
		if forward, err = o.repo.Descends(ctx, at.now, t.Head); err != nil {
			return err
		}
	}
	switch {
	case at.now == t.Head:
		return nil
	case used != "" && forward:
		return errhint.With(fmt.Errorf("%s in %s: %w", t.Branch, used, ErrCheckedOut), fmt.Sprintf("run there: git merge --ff-only %s", t.Ref))
	case used != "" || !forward && at.now != at.taken:
		return w.diverged(ctx, o, t, at.now)
	case !forward:
		t.Notes = append(t.Notes, fmt.Sprintf("the agent rewrote commits that were taken before; the branch was at %s", at.now[:12]))
	}
	t.Created = at.now == ""
	if err := to.MoveRef(heads+t.Branch, t.Head, at.now); err != nil {
		return fmt.Errorf("set %s in %s: %w", t.Branch, w.Checkout.Top, err)
	}
	return w.noteHead(ctx, o, t)
}

// diverged is the error of a branch that the commits do not continue.
func (w *Workspace) diverged(ctx context.Context, o *Offer, t *Taken, now string) error {
	return errhint.With(fmt.Errorf("%s: %w%s", t.Branch, ErrDiverged, w.conflicts(ctx, o, now, t.Head)),
		fmt.Sprintf("they are at %s: name another branch, or on %s run git merge %s", t.Ref, t.Branch, t.Ref))
}

// noteHead tells about commits on the checked-out branch that the agent's lack.
func (w *Workspace) noteHead(ctx context.Context, o *Offer, t *Taken) error {
	if o.hostHead == "" {
		return nil
	}
	descends, err := o.repo.Descends(ctx, o.hostHead, t.Head)
	if err == nil && !descends {
		t.Notes = append(t.Notes, "what is checked out has commits that these do not build on"+w.conflicts(ctx, o, o.hostHead, t.Head))
	}
	return err
}

// conflicts names the files that both sides changed differently; "" if there are
// none, or this git cannot tell.
func (w *Workspace) conflicts(ctx context.Context, o *Offer, ours, theirs string) string {
	paths, err := o.repo.Conflicts(ctx, ours, theirs)
	if err != nil || len(paths) == 0 {
		return ""
	}
	const most = 10
	var names []string
	for _, path := range paths[:min(len(paths), most)] {
		names = append(names, fmt.Sprintf("%.200q", path))
	}
	more := ""
	if len(paths) > most {
		more = fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return "; a merge has conflicts in " + strings.Join(names, ", ") + more
}

// chooseBranch returns the branch of the host: the one that was named, or that of
// the agent unless a work tree of the host stands on it. Runs that were on the same
// branch have different ones then.
func (w *Workspace) chooseBranch(o *Offer, r Request) (string, error) {
	if r.Branch != "" {
		return r.Branch, nil
	}
	if o.Branch == "" {
		return "atoll/detached", nil
	}
	if used, err := w.Checkout.UsedIn(heads + o.Branch); err != nil || used == "" {
		return o.Branch, err
	}
	if w.Run != "" {
		return "atoll/" + w.Run, checkBranch("atoll/" + w.Run)
	}
	if strings.HasPrefix(o.Branch, "atoll/") {
		return o.Branch + "-next", nil
	}
	return "atoll/" + o.Branch, nil
}
