package api

import "encoding/json"

// AuditQuery filters records of the audit log.
type AuditQuery struct {
	Limit   int    `query:"limit" min:"1" max:"10000" doc:"The last so many; 100 if not given."`
	Run     string `query:"run" doc:"Only this run."`
	Account string `query:"account" doc:"Only this billing account."`
	Denied  bool   `query:"denied" doc:"Only what was refused."`
}

// Audit holds the last records of the audit log.
type Audit struct {
	Records []json.RawMessage `json:"records"`
}
