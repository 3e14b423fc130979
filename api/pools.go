package api

// Pools are the pools of the gateway.
type Pools struct {
	Pools []Pool `json:"pools"`
}

// Pool is what the gateway keeps ready for one agent.
type Pool struct {
	Agent      string `json:"agent"`
	Size       int    `json:"size" doc:"How many sandboxes are to wait."`
	Configured int    `json:"configured" doc:"The size that the configuration has."`
	Ready      int    `json:"ready" doc:"How many wait."`
	Making     int    `json:"making" doc:"How many are being made."`
	Backend    string `json:"backend,omitempty"`
	Claimed    int64  `json:"claimed" doc:"How many this gateway took out since it started."`
	Missed     int64  `json:"missed" doc:"New sandboxes since then for which there was none."`
	Failures   int    `json:"failures,omitzero" doc:"Attempts to fill it that failed, in a row."`
	Problem    string `json:"problem,omitempty" doc:"Why it is not full."`
}

// ResizePool sets how many sandboxes wait for an agent.
type ResizePool struct {
	Size int `json:"size" min:"0" max:"64" doc:"How many are to wait; all pools together at most 256."`
}
