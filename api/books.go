package api

import (
	"encoding/json"
	"time"
)

// CostQuery chooses what was spent.
type CostQuery struct {
	Since   string `query:"since" doc:"Only calls since this time (RFC 3339)."`
	Until   string `query:"until" doc:"Only calls before this time (RFC 3339)."`
	Account string `query:"account" doc:"Only this billing account."`
	Run     string `query:"run" doc:"Only this run."`
}

// Costs is what was spent on models, by account and by run.
type Costs struct {
	Accounts []AccountCost `json:"accounts"`
	Runs     []CostOfRun   `json:"runs"`
}

// AccountCost is what one account spent.
type AccountCost struct {
	Account     string `json:"account"`
	Runs        int64  `json:"runs"`
	Calls       int64  `json:"calls"`
	Tokens      int64  `json:"tokens"`
	MicroUSD    int64  `json:"microUSD"`
	Provisional int64  `json:"provisional" doc:"Calls whose bill is not known yet."`
	Unpriced    int64  `json:"unpriced,omitzero" doc:"Calls whose money nobody knows."`
}

// CostOfRun is what one run spent.
type CostOfRun struct {
	Run         string    `json:"run"`
	Account     string    `json:"account"`
	Agent       string    `json:"agent"`
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
	Calls       int64     `json:"calls"`
	Tokens      int64     `json:"tokens"`
	MicroUSD    int64     `json:"microUSD"`
	Provisional int64     `json:"provisional"`
	Unpriced    int64     `json:"unpriced,omitzero"`
	Crashed     int64     `json:"crashed,omitzero"`
}

// AuditQuery chooses records of the audit log.
type AuditQuery struct {
	Limit   int    `query:"limit" min:"1" max:"10000" doc:"The last so many; 100 if not given."`
	Run     string `query:"run" doc:"Only this run."`
	Account string `query:"account" doc:"Only this billing account."`
	Denied  bool   `query:"denied" doc:"Only what was refused."`
}

// Audit is the end of the audit log.
type Audit struct {
	Records []json.RawMessage `json:"records"`
}

// Health says that the gateway lives.
type Health struct {
	OK      bool   `json:"ok"`
	Version string `json:"version"`
}

// Ready says that the gateway can do its work.
type Ready struct {
	Ready bool `json:"ready"`
}
