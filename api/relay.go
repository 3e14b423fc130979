package api

import "time"

// RelayRecord is what became of the commits of a run.
type RelayRecord struct {
	Run      string         `json:"run"`
	Account  string         `json:"account,omitempty"`
	Agent    string         `json:"agent,omitempty"`
	Branch   string         `json:"branch"`
	State    string         `json:"state" doc:"The step that it came to, such as judged, waiting, blocked, pushed or done."`
	Note     string         `json:"note" doc:"The same in words."`
	Held     bool           `json:"held,omitzero" doc:"The agent failed: a person decides whether it is pushed."`
	Pull     string         `json:"pullRequest,omitempty"`
	Trouble  string         `json:"trouble,omitempty" doc:"Why the last attempt ended."`
	Commits  []string       `json:"commits,omitempty" doc:"The agent's, parents first."`
	Files    int            `json:"files" doc:"That they change."`
	Findings []RelayFinding `json:"findings,omitempty" doc:"What the content policy found."`
	Approved string         `json:"approvedBy,omitempty"`
	Denied   string         `json:"deniedBy,omitempty"`
	Changed  time.Time      `json:"changed"`
}

// RelayPatch is what the commits of a run change, as mail that git can apply: a message
// for each commit, as the host rendered it from commits that it checked.
type RelayPatch struct {
	Patch string `json:"patch"`
	Cut   bool   `json:"cut,omitzero" doc:"There is more: atoll relay show RUN --patch has what is kept."`
	Why   string `json:"why,omitempty" doc:"Why there is none."`
}

// RelayFinding is one finding of the content policy.
type RelayFinding struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	Commit  string `json:"commit,omitempty"`
	Path    string `json:"path,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// RelayQuery filters records of the relay.
type RelayQuery struct {
	Account string `query:"account" doc:"Only this billing account."`
	Limit   int    `query:"limit" min:"1" max:"1000" doc:"At most so many; 100 if not given."`
}

// RelayRecords is a list of records, those that changed last first.
type RelayRecords struct {
	Relays []RelayRecord `json:"relays"`
	Total  int           `json:"total"`
}

// RelayPush sends commits that were kept.
type RelayPush struct {
	Approve bool `json:"approve,omitzero" doc:"Say yes to what waits for a person."`
}
