package api

import "encoding/json"

// AuditQuery filters records of the audit log.
type AuditQuery struct {
	Limit   int    `query:"limit" min:"1" max:"10000" doc:"The last so many; 100 if not given."`
	Run     string `query:"run" doc:"Only this run."`
	Account string `query:"account" doc:"Only this billing account."`
	Denied  bool   `query:"denied" doc:"Only what was refused."`
	Kind    string `query:"kind" doc:"Only these kinds, separated by commas: model, exec, file, egress, git, approval, login."`
	Since   string `query:"since" doc:"Only records since this time (RFC 3339)."`
	Until   string `query:"until" doc:"Only records before this time (RFC 3339)."`
	Cursor  string `query:"cursor" doc:"next of the page before: older records."`
}

// Audit holds the last records of the audit log.
type Audit struct {
	Records []json.RawMessage `json:"records" doc:"In the order of time."`
	Next    string            `json:"next,omitempty" doc:"Cursor of the page with older records; absent if this is the last."`
}

// AuditVerification says whether the audit log is whole.
type AuditVerification struct {
	OK       bool           `json:"ok"`
	Segments int            `json:"segments"`
	Records  int64          `json:"records"`
	Dropped  int64          `json:"dropped" doc:"Records that were counted only."`
	Retired  int            `json:"retired" doc:"Segments that retention removed."`
	Unsigned int64          `json:"unsigned" doc:"Records after the last signature."`
	Problems []AuditProblem `json:"problems" doc:"At most 100."`
}

// AuditProblem is one inconsistency of the audit log.
type AuditProblem struct {
	Segment string `json:"segment"`
	Line    int64  `json:"line,omitzero"`
	What    string `json:"what"`
}
