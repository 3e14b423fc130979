package config

// llmFile is llm.*: how models are reached, what they cost and what may be
// spent on them. What differs between agents is in agentLLMFile.
type llmFile struct {
	Providers    map[string]llmProviderFile `json:"providers" keys:"providerName" doc:"Where models are served, by name. Without any: LiteLLM at http://litellm:4000 with the key in LITELLM_MASTER_KEY."`
	Prices       map[string]LLMPrice        `json:"prices" keys:"model" doc:"What models cost, by name. They go before what LiteLLM tells."`
	Unpriced     *string                    `json:"unpriced" enum:"refuse|count" doc:"What happens to a call of a model without a price where a budget of money holds: it is refused, or its tokens are counted and its money is not known."`
	Budgets      *llmSharedBudgetsFile      `json:"budgets" doc:"What may be spent by everybody together."`
	Timeouts     *llmTimeoutsFile           `json:"timeouts" doc:"How long an upstream may take."`
	Limits       *llmLimitsFile             `json:"limits" doc:"How much one caller may ask."`
	Billing      *llmBillingFile            `json:"billing" doc:"How our figures are compared with LiteLLM's."`
	AllowMembers []string                   `json:"allowMembers" check:"bodyMember" doc:"Members that requests may have besides those that Atoll knows; tools.NAME is a member of a tool, generationConfig.NAME one of that member. What steers the gateway behind is refused all the same."`
	AllowTools   []string                   `json:"allowTools" check:"bodyMember" doc:"Kinds of tools (their type) that run on the caller's side, besides those that Atoll knows."`
	Embed        *string                    `json:"embeddings" check:"word" doc:"Model that turns memories into vectors, as PROVIDER/NAME, so that memory_search finds them by meaning. Without one it compares words."`
}

type llmProviderFile struct {
	Kind   *string      `json:"kind" enum:"litellm|openai|anthropic|google" doc:"Who answers there. Only LiteLLM is asked for prices and bills."`
	URL    *string      `json:"url" required:"yes" check:"upstreamURL" doc:"Where the API is, without /v1 or /v1beta; unix:/PATH is a socket (not of LiteLLM)."`
	Keys   []llmKeyFile `json:"keys" required:"yes" doc:"Where keys come from; with several, the next one is used while one is refused or throttled."`
	Models []string     `json:"models" check:"model" doc:"Models that are asked here; a name may end in *. Without any: all that no other provider names."`
	Admin  *llmKeyFile  `json:"adminKey" doc:"LiteLLM's key for spend logs and virtual keys, if it is not the first of keys."`
	CA     *string      `json:"caFile" check:"hostPath" doc:"File with the certificates that the upstream's must come from, instead of the system's."`
	Key    *bool        `json:"keyPerRun" doc:"Make one virtual key a run, limited as the run is and deleted at its end (LiteLLM only)."`
}

type llmKeyFile struct {
	Env      *string  `json:"env" check:"envName" doc:"Variable of the environment."`
	File     *string  `json:"file" check:"hostPath" doc:"File that only you can read."`
	Command  []string `json:"command" check:"line" doc:"Program, with its arguments, that prints the key."`
	Age      *string  `json:"age" check:"hostPath" doc:"File encrypted with age."`
	Identity *string  `json:"identity" check:"hostPath" doc:"File with the age identity that opens it."`
}

// LLMPrice is what a million tokens of a model cost, in US dollars.
type LLMPrice struct {
	Input       float64  `json:"input" required:"yes" min:"0" max:"100000" doc:"A million tokens of input."`
	Output      float64  `json:"output" required:"yes" min:"0" max:"100000" doc:"A million tokens of output."`
	CachedInput *float64 `json:"cachedInput,omitzero" min:"0" max:"100000" doc:"A million tokens of input that were in the provider's cache (default: as input)."`
	CacheWrite  *float64 `json:"cacheWrite,omitzero" min:"0" max:"100000" doc:"A million tokens of input that were put into it (default: as input)."`
}

// LLMBudget is a most, in money and in tokens; 0 is no limit.
type LLMBudget struct {
	USD    float64 `json:"usd,omitzero" min:"0" max:"1000000" doc:"Most US dollars; 0 is no limit."`
	Tokens int64   `json:"tokens,omitzero" min:"0" doc:"Most tokens, of input and output together; 0 is no limit."`
}

type llmSharedBudgetsFile struct {
	Account *LLMBudget `json:"account" doc:"Of one billing account, over all time."`
	Day     *LLMBudget `json:"day" doc:"Of one billing account in one day (UTC)."`
}

type llmTimeoutsFile struct {
	ConnectMs *int `json:"connectMs" min:"1" max:"600000" doc:"Until a connection stands."`
	HeaderMs  *int `json:"headerMs" min:"1" max:"3600000" doc:"Until an answer begins."`
	IdleMs    *int `json:"idleMs" min:"1000" max:"3600000" doc:"Between two pieces of an answer."`
	TotalMs   *int `json:"totalMs" min:"1000" max:"86400000" doc:"For a whole answer."`
}

type llmLimitsFile struct {
	BodyBytes       *Size `json:"bodyBytes" check:"size" doc:"Largest request."`
	MaxOutputTokens *int  `json:"maxOutputTokens" min:"1" max:"10000000" doc:"Most tokens that one answer may be asked for."`
	Choices         *int  `json:"choices" min:"1" max:"128" doc:"Most answers to one request (n)."`
	Connections     *int  `json:"connections" min:"1" max:"100000" doc:"Most connections of one caller."`
	Requests        *int  `json:"requests" min:"1" max:"100000" doc:"Most requests of one caller at a time."`
}

type llmBillingFile struct {
	GraceSeconds *int `json:"graceSeconds" min:"0" max:"86400" doc:"How long LiteLLM may take to write a call down before it counts as missing."`
	RetrySeconds *int `json:"retrySeconds" min:"1" max:"3600" doc:"How long to wait between two looks."`
}

// agentLLMFile is agents.defaults.llm and an agent's llm.
type agentLLMFile struct {
	Models     []string        `json:"models" check:"model" doc:"Only these models; a name may end in *. Without any: all."`
	BodyPolicy *string         `json:"bodyPolicy" enum:"strict|open" doc:"With strict, the provider may be asked to fetch nothing: no remote addresses, hosted tools, stored or background answers."`
	Budgets    *llmBudgetsFile `json:"budgets" doc:"What may be spent."`
}

type llmBudgetsFile struct {
	Run     *LLMBudget `json:"run" doc:"In one run."`
	Session *LLMBudget `json:"session" doc:"In one session, over all its runs."`
	Agent   *LLMBudget `json:"agent" doc:"By the agent, over all its sessions."`
}
