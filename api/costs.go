package api

import "time"

// CostQuery filters costs.
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
