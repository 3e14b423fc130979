package api

// Health says that the gateway lives.
type Health struct {
	OK      bool   `json:"ok"`
	Version string `json:"version"`
}

// Ready says that the gateway can do its work.
type Ready struct {
	Ready bool `json:"ready"`
}
