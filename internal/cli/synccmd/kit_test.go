package synccmd

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// hostile is a name that would act on a terminal.
const hostile = "a\nb\x1b[2J\u202egpj.exe\xff"

func tree() *api.SyncTree {
	return &api.SyncTree{
		ID: "dir-shop", Base: "/home/me/shop", Target: "/workspace", Kind: "kernel", Hash: "h",
		Counts:   api.SyncCounts{Pass: 3, Approval: 1, Blocked: 1, Conflict: 1, Withheld: 4241},
		Withheld: []api.SyncGroup{{Name: ".git", Files: 31}, {Name: "node_modules", Files: 4210}},
		Entries: []api.SyncEntry{
			{Path: "src/cart.go", Kind: "modified", SHA256: "aa", Verdict: api.SyncPass, Added: 14, Removed: 3},
			{Path: "src/cart_test.go", Kind: "added", SHA256: "bb", Verdict: api.SyncPass, Added: 88},
			{Path: "scripts/run.sh", Kind: "mode", SHA256: "cc", Mode: "0755", OldMode: "0644", Verdict: api.SyncApprove, Reasons: []api.SyncReason{{Rule: "executable", Verdict: "approval", Detail: "becomes executable"}}},
			{Path: "notes.txt", Kind: "added", SHA256: "dddddddddddddddd", Added: 4, Verdict: api.SyncBlocked, Reasons: []api.SyncReason{{Rule: "secret", Verdict: "blocked", Detail: "line 4: aws-access-token"}}},
			{Path: "README.md", Kind: "modified", SHA256: "ee", Verdict: api.SyncConflict, Reasons: []api.SyncReason{{Rule: "conflict", Detail: "the host's file changed at 14:31"}}},
			{Path: "old/legacy.go", Kind: "deleted", Verdict: api.SyncPass, Removed: 210},
		},
	}
}

// fakeSync is a gate that records what it is asked to do.
type fakeSync struct {
	backend.Sync
	tree *api.SyncTree
	did  []string
}

func (f *fakeSync) Trees(context.Context, *api.SyncSubject) (*api.SyncTrees, error) {
	if f.tree == nil {
		return nil, console.WithCode(exitNoOverlay, errors.New("no overlay"))
	}
	return &api.SyncTrees{Trees: []api.SyncTree{*f.tree}}, nil
}

func (f *fakeSync) Diff(_ context.Context, _ *api.SyncSubject, path string) (*api.SyncDiff, error) {
	return &api.SyncDiff{Path: path, Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old \x1b]0;owned\x07\n+new\n"}, nil
}

func (f *fakeSync) Approve(_ context.Context, r *api.SyncApproval) (*api.SyncApplied, error) {
	a := &api.SyncApplied{ID: "s-7f3k", Base: f.tree.Base}
	for _, c := range r.Choices {
		a.Files = append(a.Files, c.Path)
		f.did = append(f.did, "approve "+c.Path+" "+c.SHA256)
	}
	return a, nil
}

func (f *fakeSync) Override(_ context.Context, r *api.SyncOverride) (*api.SyncApplied, error) {
	f.did = append(f.did, "override "+r.Path+": "+r.Reason)
	return &api.SyncApplied{ID: "s-2", Base: f.tree.Base, Files: []string{r.Path}}, nil
}

func (f *fakeSync) Reject(_ context.Context, r *api.SyncRejection) (*api.SyncDone, error) {
	for _, path := range r.Paths {
		f.did = append(f.did, "reject "+path)
	}
	return &api.SyncDone{Files: r.Paths}, nil
}

// call runs a verb in an empty directory, without a terminal.
type caller struct {
	t    *testing.T
	sync *fakeSync
	env  map[string]string
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	return &caller{t, &fakeSync{tree: tree()}, map[string]string{"HOME": dir, "ATOLL_STATE_DIR": filepath.Join(dir, "state")}}
}

func (c *caller) call(args ...string) (out, errs string, code int) {
	c.t.Helper()
	var o, e bytes.Buffer
	terminal := console.NewEnv(&console.Terminal{In: &bytes.Buffer{}, Out: &o, Err: &e, Getenv: func(name string) string { return c.env[name] }})
	cmd := newCommand(&env{Env: terminal, sync: c.sync})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(c.t.Context())
	code = terminal.Finish(c.t.Context(), err)
	return o.String(), e.String(), code
}

// did checks what the gate was asked for since the last look.
func (c *caller) did(want ...string) {
	c.t.Helper()
	if !slices.Equal(c.sync.did, want) {
		c.t.Errorf("did %q, want %q", c.sync.did, want)
	}
	c.sync.did = nil
}
