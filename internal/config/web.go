package config

// Web is tools.web: how the tools for the web work. The keys are OpenClaw's but
// for search.baseUrl and fetch.allowAddresses.
type Web struct {
	Search WebSearch `json:"search,omitzero" doc:"The tool web_search. It works only where networkAllow lists it."`
	Fetch  WebFetch  `json:"fetch,omitzero" doc:"The tool web_fetch. It works only in a sandbox with a network."`
	_      struct{}  `accept:"tools.web"`
}

// WebSearch is tools.web.search.
type WebSearch struct {
	Enabled        *bool    `json:"enabled,omitzero" doc:"Offer the tool."`
	Provider       string   `json:"provider,omitempty" check:"line" doc:"Who searches: brave or searxng."`
	APIKey         *Secret  `json:"apiKey,omitzero" doc:"Key of the provider, or where it is kept. It never enters a sandbox."`
	BaseURL        string   `json:"baseUrl,omitempty" check:"line" doc:"Where the provider is, if not at its usual place."`
	MaxResults     *int     `json:"maxResults,omitzero" min:"1" max:"20" doc:"Most results of one search."`
	TimeoutSeconds *int     `json:"timeoutSeconds,omitzero" min:"1" max:"300" doc:"How long a search may take."`
	_              struct{} `accept:"tools.web.search"`
}

// WebFetch is tools.web.fetch.
type WebFetch struct {
	Enabled   *bool  `json:"enabled,omitzero" doc:"Offer the tool."`
	MaxChars  *int   `json:"maxChars,omitzero" min:"100" max:"200000" doc:"Most characters of a page in one answer."`
	UserAgent string `json:"userAgent,omitempty" check:"line" doc:"How the tool introduces itself to servers."`
	// AllowAddresses are addresses that may be fetched although they are not on
	// the public internet.
	AllowAddresses []string `json:"allowAddresses,omitzero" check:"range" doc:"Addresses (CIDR) that may be fetched although they are not on the public internet."`
	// UseProxy sends pages that the host has a proxy for to the proxy.
	UseProxy bool     `json:"useTrustedEnvProxy,omitzero" doc:"Ask the proxy of the host's environment (HTTPS_PROXY, HTTP_PROXY) for pages, from the host and not from the sandbox's network. The proxy resolves names, so it must refuse private addresses itself."`
	_        struct{} `accept:"tools.web.fetch"`
}

// Web returns tools.web.
func (c *Config) Web() Web {
	w := *orEmpty(orEmpty(c.file.Tools).Web)
	c.limits.web(&w)
	return w
}
