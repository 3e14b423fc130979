package api

import "time"

// SyncSubject names the sandbox whose changes are decided about: that of a directory
// of the host, of a run on one, or of a session.
type SyncSubject struct {
	Directory string `json:"directory,omitempty" doc:"Directory of the host, as an absolute path; only for callers that are bound to no account."`
	Run       string `json:"run,omitempty" doc:"Run on a directory of the host, by its id; only for callers that are bound to no account."`
	Agent     string `json:"agent,omitempty" doc:"Agent of the configuration; the default one if none is named."`
	Session   string `json:"session,omitempty" doc:"Session key; the agent's main session if none is named."`
	Account   string `json:"account,omitempty" doc:"Billing account; a bound token's own."`
	Scope     string `json:"scope,omitempty" enum:"session|agent|shared" doc:"Who shares the sandbox; as configured if none is given."`
	Tree      int    `json:"tree,omitzero" min:"0" max:"100" doc:"0 is the workspace, others are those of sandbox.overlay.more."`
}

// SyncQuery names a sandbox, and a path or an applied batch of it.
type SyncQuery struct {
	Directory string `query:"directory" doc:"Directory of the host, as an absolute path; only for callers that are bound to no account."`
	Run       string `query:"run" doc:"Run on a directory of the host, by its id; only for callers that are bound to no account."`
	Agent     string `query:"agent" doc:"Agent of the configuration; the default one if none is named."`
	Session   string `query:"session" doc:"Session key; the agent's main session if none is named."`
	Account   string `query:"account" doc:"Billing account; a bound token's own."`
	Scope     string `query:"scope" enum:"session|agent|shared" doc:"Who shares the sandbox; as configured if none is given."`
	Tree      int    `query:"tree" min:"0" max:"100" doc:"0 is the workspace, others are those of sandbox.overlay.more."`
	Path      string `query:"path" doc:"Path of a changed file, relative to the workspace."`
}

// Subject returns the subject of the query.
func (q *SyncQuery) Subject() *SyncSubject {
	return &SyncSubject{Directory: q.Directory, Run: q.Run, Agent: q.Agent, Session: q.Session, Account: q.Account, Scope: q.Scope, Tree: q.Tree}
}

// SyncTrees are the overlays of a sandbox, with what changed in each.
type SyncTrees struct {
	Trees []SyncTree `json:"trees"`
}

// SyncRuns are the runs on a directory in whose overlays something waits, or that are
// under way, the newest first.
type SyncRuns struct {
	Runs []SyncRun `json:"runs"`
}

// SyncRun is what waits in the overlay of one run, as it was looked at last.
type SyncRun struct {
	Run      string     `json:"run"`
	UnderWay bool       `json:"underWay,omitzero"`
	Counts   SyncCounts `json:"counts"`
	Commits  int        `json:"commits" doc:"Made inside, that the repository has not, and further branches with such."`
}

// SyncOverlay is how much waits in the overlays of one sandbox.
type SyncOverlay struct {
	ID      string       `json:"id"`
	Base    string       `json:"base"`
	Kind    string       `json:"kind"`
	Subject *SyncSubject `json:"subject,omitempty"` // none if whose it is is not known any more
	Waiting int          `json:"waiting"`           // files
	Commits int          `json:"commits"`
}

// SyncTree is one overlay with everything that changed in it.
type SyncTree struct {
	ID          string       `json:"id" doc:"Of the sandbox's overlays, the same in all of its trees."`
	Tree        int          `json:"tree"`
	Base        string       `json:"base,omitempty" doc:"On the host; only for callers that are bound to no account."`
	Target      string       `json:"target" doc:"Inside the sandbox."`
	Kind        string       `json:"kind" enum:"kernel|copy"`
	Since       time.Time    `json:"since,omitzero"`
	Torn        bool         `json:"torn,omitzero" doc:"The host ended without writing everything: the changes may be incomplete."`
	Hidden      int          `json:"hidden" doc:"Files of the host that are not visible inside, because they hold secrets."`
	Counts      SyncCounts   `json:"counts"`
	HostChanged int          `json:"hostChanged" doc:"Files of the host that are not what the agent began with, and that it has not been given since."`
	HostPartly  bool         `json:"hostPartly,omitzero" doc:"Not all files of the host were looked at for that: there are more than 5,000."`
	Entries     []SyncEntry  `json:"entries" doc:"Deletions first."`
	Withheld    []SyncGroup  `json:"withheld,omitempty" doc:"What is never taken over, counted by reason."`
	Commits     *SyncCommits `json:"commits,omitempty" doc:"What the agent committed, if the workspace is a repository and the sandbox runs. Files as they were committed are withheld."`
	Note        string       `json:"note,omitempty" doc:"What could not be looked at, and why."`
	Hash        string       `json:"hash" doc:"Of everything that is listed and counted."`
}

// SyncCounts are how many entries have each verdict; withheld counts files that are
// no entries.
type SyncCounts struct {
	Pass     int `json:"pass"`
	Approval int `json:"approval"`
	Blocked  int `json:"blocked"`
	Conflict int `json:"conflict"`
	Withheld int `json:"withheld"`
}

// The verdicts of entries.
const (
	SyncPass     = "pass"
	SyncApprove  = "approval"
	SyncBlocked  = "blocked"
	SyncConflict = "conflict"
)

// SyncEntry is one change.
type SyncEntry struct {
	Path    string       `json:"path"`
	From    string       `json:"from,omitempty" doc:"Of a file that was renamed."`
	Kind    string       `json:"kind" enum:"added|modified|deleted|mode|link|replaced|renamed|special"`
	Mode    string       `json:"mode,omitempty" doc:"Inside, in octal."`
	OldMode string       `json:"oldMode,omitempty" doc:"Of the host's file, in octal."`
	IsDir   bool         `json:"isDir,omitzero"`
	Size    int64        `json:"size,omitzero"`
	SHA256  string       `json:"sha256,omitempty" doc:"Of the content that is applied, or of a link's text."`
	Link    string       `json:"link,omitempty" doc:"Text of a symbolic link."`
	Verdict string       `json:"verdict" enum:"pass|approval|blocked|conflict"`
	Reasons []SyncReason `json:"reasons,omitempty"`
	Added   int          `json:"added,omitzero" doc:"Lines."`
	Removed int          `json:"removed,omitzero" doc:"Lines."`
	// Overridden is the reason that a person gave for letting it pass.
	Overridden string `json:"overridden,omitempty" doc:"The reason that a person gave for letting it pass."`
}

// SyncReason is why an entry does not pass.
type SyncReason struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	Detail  string `json:"detail,omitempty"`
}

// SyncGroup counts files that are withheld for one reason.
type SyncGroup struct {
	Name  string `json:"name"`
	Files int    `json:"files"`
}

// SyncDiff is what changed in one file, as a unified diff.
type SyncDiff struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty" doc:"Of the content that the diff leads to."`
	Diff   string `json:"diff"`
}

// SyncChoice is an entry at the content that a person saw.
type SyncChoice struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256,omitempty" doc:"Of the content that was shown; other content is refused. Deletions have none."`
}

// SyncApproval applies entries to the host.
type SyncApproval struct {
	Subject          SyncSubject  `json:"subject,omitzero"`
	Choices          []SyncChoice `json:"choices"`
	ConfirmDeletions bool         `json:"confirmDeletions,omitzero" doc:"Needed for more than 100 deletions, or a fifth of the files."`
}

// Of returns whose changes it decides about.
func (r *SyncApproval) Of() *SyncSubject { return &r.Subject }

// SyncApplied is a batch that was applied.
type SyncApplied struct {
	ID    string   `json:"id" doc:"Undoes it."`
	Base  string   `json:"base,omitempty" doc:"On the host; only for callers that are bound to no account."`
	Files []string `json:"files"`
}

// SyncRejection leaves changes out until they become others.
type SyncRejection struct {
	Subject SyncSubject `json:"subject,omitzero"`
	Paths   []string    `json:"paths"`
}

// Of returns whose changes it decides about.
func (r *SyncRejection) Of() *SyncSubject { return &r.Subject }

// SyncOverride lets an entry pass that needs a person, and applies it.
type SyncOverride struct {
	Subject SyncSubject `json:"subject,omitzero"`
	Path    string      `json:"path"`
	SHA256  string      `json:"sha256,omitempty" doc:"Of the content that was shown. Deletions have none."`
	Reason  string      `json:"reason" doc:"Recorded in the audit log."`
}

// Of returns whose changes it decides about.
func (r *SyncOverride) Of() *SyncSubject { return &r.Subject }

// SyncTake says which commits are taken to which branch of the host's repository.
type SyncTake struct {
	Subject  SyncSubject `json:"subject,omitzero"`
	Branch   string      `json:"branch,omitempty" doc:"Of the host; by the agent's branch if none is given."`
	From     string      `json:"from,omitempty" doc:"A branch inside; what is checked out there if none is given."`
	Head     string      `json:"head,omitempty" doc:"The last commit that was looked at; others are refused. Needed with approve and reason."`
	Approve  bool        `json:"approve,omitzero" doc:"Take also what needs approval."`
	Reason   string      `json:"reason,omitempty" doc:"Why secrets that were found are taken nevertheless."`
	Unsigned bool        `json:"unsigned,omitzero" doc:"Do not sign, though git is configured to."`
}

// Of returns whose changes it decides about.
func (r *SyncTake) Of() *SyncSubject { return &r.Subject }

// SyncUndo names a batch that is put back.
type SyncUndo struct {
	Subject SyncSubject `json:"subject,omitzero"`
	ID      string      `json:"id"`
}

// Of returns whose changes it decides about.
func (r *SyncUndo) Of() *SyncSubject { return &r.Subject }

// SyncRequest names the sandbox of a decision about all of its changes.
type SyncRequest struct {
	Subject SyncSubject `json:"subject,omitzero"`
}

// Of returns whose changes it decides about.
func (r *SyncRequest) Of() *SyncSubject { return &r.Subject }

// SyncDone is what a decision did.
type SyncDone struct {
	Files []string `json:"files,omitempty"`
	Note  string   `json:"note,omitempty"`
}

// SyncHistory lists what was applied, the newest first.
type SyncHistory struct {
	Batches []SyncBatch `json:"batches"`
}

// SyncBatch is one batch that was applied, undone, or taken back after a failure.
type SyncBatch struct {
	ID       string    `json:"id"`
	Time     time.Time `json:"time"`
	By       string    `json:"by,omitempty"`
	Result   string    `json:"result"`
	Undoes   string    `json:"undoes,omitempty" doc:"Id of the batch that it put back."`
	Undoable bool      `json:"undoable" doc:"What it replaced is kept."`
	Files    []string  `json:"files"`
}

// SyncCommits are commits made inside that the repository of the host has not.
type SyncCommits struct {
	Branch  string       `json:"branch,omitempty" doc:"The branch that the agent is on."`
	Head    string       `json:"head,omitempty" doc:"The agent's last commit."`
	Verdict string       `json:"verdict,omitempty" enum:"approval|blocked" doc:"Of all commits; they pass if there is none."`
	Commits []SyncCommit `json:"commits"`
	Others  []string     `json:"others,omitempty" doc:"Further branches with commits that the host has not."`
}

// SyncCommit is one commit made inside.
type SyncCommit struct {
	ID      string       `json:"id"`
	Subject string       `json:"subject"`
	Author  string       `json:"author,omitempty"`
	Time    time.Time    `json:"time,omitzero"`
	Files   int          `json:"files"`
	Verdict string       `json:"verdict,omitempty" enum:"approval|blocked"`
	Reasons []SyncReason `json:"reasons,omitempty"`
}

// SyncTaken is a branch that has the agent's commits now.
type SyncTaken struct {
	Branch  string   `json:"branch"`
	Ref     string   `json:"ref,omitempty" doc:"That keeps the commits."`
	Head    string   `json:"head" doc:"The last commit of the branch."`
	Commits int      `json:"commits"`
	Created bool     `json:"created,omitzero" doc:"The branch is new."`
	Signed  bool     `json:"signed,omitzero"`
	Notes   []string `json:"notes,omitempty"`
}
