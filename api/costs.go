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

// SeriesQuery asks for costs over time.
type SeriesQuery struct {
	Since   string `query:"since" doc:"Only calls since this time (RFC 3339); 30 days ago if not given."`
	Until   string `query:"until" doc:"Only calls before this time (RFC 3339)."`
	Account string `query:"account" doc:"Only this billing account."`
	By      string `query:"by" enum:"account|agent|model" doc:"What it is split by; nothing if not given."`
	Bucket  string `query:"bucket" enum:"hour|day" doc:"Length of its buckets; day if not given."`
}

// CostSeries is what was spent over time; buckets without calls are left out.
type CostSeries struct {
	Points []CostPoint `json:"points" doc:"At most 2000."`
}

// CostPoint is what was spent within a bucket.
type CostPoint struct {
	At          time.Time `json:"at" doc:"Begin of the bucket, in UTC."`
	Key         string    `json:"key" doc:"The account, agent or model."`
	Calls       int64     `json:"calls"`
	Tokens      int64     `json:"tokens"`
	MicroUSD    int64     `json:"microUSD"`
	Provisional int64     `json:"provisional"`
	Unpriced    int64     `json:"unpriced"`
}
