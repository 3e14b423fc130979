package api

// Health reports that the gateway's process answers.
type Health struct {
	OK      bool   `json:"ok"`
	Version string `json:"version"`
}

// Ready reports that the gateway can do its work.
type Ready struct {
	Ready bool `json:"ready"`
}
