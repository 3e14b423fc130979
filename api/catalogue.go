package api

// Variants are the kinds of agents that runs can be given to.
type Variants struct {
	Variants []Variant `json:"variants"`
}

// Variant is one of them.
type Variant struct {
	ID          string `json:"id" doc:"graphId of a run."`
	Name        string `json:"name"`
	Description string `json:"description"`
	Image       string `json:"image,omitempty" doc:"What its sandboxes are made of; absent is the installation's default."`
	Timeout     int    `json:"timeoutSeconds"`
	Memory      int64  `json:"memory" doc:"Bytes."`
	Remote      bool   `json:"remote,omitzero" doc:"It works at another service, not in a sandbox."`
	OnDirectory bool   `json:"onDirectory,omitzero" doc:"It can work on a directory of the host."`
	Unavailable string `json:"unavailable,omitempty" doc:"Why it cannot work now."`
}

// Models are those that agents can ask.
type Models struct {
	Models []Model `json:"models"`
}

// Model is one of them.
type Model struct {
	ID            string `json:"id" doc:"provider/name."`
	Name          string `json:"name"`
	Provider      string `json:"provider"`
	ContextWindow int64  `json:"contextWindow,omitzero"`
	Reasoning     bool   `json:"reasoning,omitzero"`
}
