package api

import "time"

// Budgets are what may be spent on models, and what was.
type Budgets struct {
	Budgets []SpendBudget `json:"budgets"`
}

// SpendBudget is a limit of the configuration and what was spent of it. A limit of 0 is
// none.
type SpendBudget struct {
	Scope      string `json:"scope" enum:"account|day" doc:"Of an account over all time, or in this day (UTC)."`
	Account    string `json:"account"`
	MicroUSD   int64  `json:"microUsd" doc:"The limit."`
	Tokens     int64  `json:"tokens" doc:"The limit."`
	SpentMicro int64  `json:"spentMicroUsd"`
	SpentTok   int64  `json:"spentTokens"`
	Expected   int64  `json:"expectedMicroUsd,omitzero" doc:"Of a day: at this pace, at its end."`
	Unpriced   int64  `json:"unpricedCalls,omitzero" doc:"Calls whose money nobody knows."`
	FromConfig string `json:"from,omitempty" doc:"The key of the configuration that has the limit."`
}

// ConfigQuery names the agent whose settings are shown.
type ConfigQuery struct {
	Agent string `query:"agent" doc:"The default one if not given."`
}

// Config is the settings of an agent, each with where it came from. Values that are, or
// may be, secrets are hidden.
type Config struct {
	Agent    string    `json:"agent"`
	Path     string    `json:"path" doc:"Of the configuration file."`
	Settings []Setting `json:"settings"`
}

// Setting is one setting.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source" doc:"agent, global, default, derived or project."`
	Path   string `json:"path,omitempty" doc:"Where it is written in the file."`
	Line   int    `json:"line,omitzero"`
}

// Images are the images that need no engine.
type Images struct {
	Images []Image `json:"images"`
}

// Image is one of them.
type Image struct {
	ID      string    `json:"id"`
	Names   []string  `json:"names"`
	Digest  string    `json:"digest,omitempty"`
	Source  string    `json:"source" doc:"Where it came from."`
	OnHost  bool      `json:"onHost,omitzero" doc:"Its layers lie on the host's own programs."`
	Size    int64     `json:"size" doc:"Bytes."`
	Files   int64     `json:"files"`
	Added   time.Time `json:"added"`
	UsedBy  int       `json:"usedBy" doc:"Sandboxes."`
	Problem string    `json:"problem,omitempty"`
}
