package config

// mcpFile is mcp as it may be written.
type mcpFile struct {
	AllowDestroy *bool    `json:"allowDestroy" doc:"An MCP client may remove its sandbox without asking the person."`
	OnExit       *string  `json:"onExit" enum:"stop|keep" doc:"What becomes of the sandbox when its MCP client ends: stop it if nobody else uses it, or keep it running."`
	_            struct{} `accept:"mcp"`
}

// MCP reports whether clients of the Model Context Protocol may remove their sandbox without
// asking a person, and whether it runs on when they end.
func (c *Config) MCP() (allowDestroy, keepRunning bool) {
	f := orEmpty(c.file.MCP)
	narrowed := c.limits != nil && orEmpty(c.limits.file.MCP).AllowDestroy != nil // only false counts
	return f.AllowDestroy != nil && *f.AllowDestroy && !narrowed, f.OnExit != nil && *f.OnExit == "keep"
}
