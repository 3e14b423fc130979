// Package openclawkeys lists what OpenClaw's configuration has and Atoll does not
// act on.
package openclawkeys

// Accepted are keys that OpenClaw's own schema has in parts of the file
// that Atoll reads too. A file that uses them loads; each one found gives a
// warning that it has no effect. A key that is in neither
// list is an error: nothing that looks like a setting is skipped in silence.
//
// The names are those of the releases 2026.2 to 2026.9.
var Accepted = map[string][]string{
	"agents.defaults": {
		"agentRuntime", "authInheritance", "blockStreamingBreak", "blockStreamingChunk", "blockStreamingCoalesce",
		"blockStreamingDefault", "bootstrapMaxChars", "bootstrapPromptTruncationWarning", "bootstrapTotalMaxChars",
		"cliBackends", "compaction", "contextInjection", "contextLimits", "contextPruning", "contextTokens", "cwd",
		"decisionModel", "elevatedDefault", "embeddedAgent", "embeddedHarness", "embeddedPi", "envelopeElapsed",
		"envelopeTimestamp", "envelopeTimezone", "experimental", "fastModeDefault", "heartbeat", "humanDelay",
		"imageGenerationModel", "imageMaxDimensionPx", "imageModel", "imageQuality", "maxConcurrent",
		"mediaGenerationAutoProviderFallback", "mediaMaxMb", "mediaModels", "memorySearch", "modelPolicy",
		"models", "modelSelectionScope", "musicGenerationModel", "params", "pdfMaxBytesMb", "pdfMaxMb",
		"pdfMaxPages", "pdfModel", "promptOverlays", "reasoningDefault", "repoRoot", "runRetries", "sessionStore",
		"silentReply", "silentReplyRewrite", "skipOptionalBootstrapFiles", "startupContext", "subagents",
		"systemAgent", "systemPromptOverride", "thinkingDefault", "timeFormat", "timeoutSeconds",
		"toolProgressDetail", "typingIntervalSeconds", "typingMode", "userTimezone", "utilityModel",
		"verboseDefault", "videoGenerationModel", "voiceModel",
	},
	"agents.entries": {
		"agentDir", "agentRuntime", "bootstrapMaxChars", "bootstrapTotalMaxChars", "contextInjection",
		"contextLimits", "contextTokens", "cwd", "decisionModel", "description", "embeddedAgent",
		"embeddedHarness", "embeddedPi", "experimental", "fastModeDefault", "groupChat", "heartbeat", "humanDelay",
		"identity", "memory", "memorySearch", "modelPolicy", "models", "name", "params", "reasoningDefault",
		"runRetries", "runtime", "skillsLimits", "subagents", "systemPromptOverride", "thinkingDefault",
		"toolProgressDetail", "tts", "typingMode", "utilityModel", "verboseDefault",
	},
	"tools": {
		"agentToAgent", "byProvider", "codeMode", "elevated", "exec", "experimental", "fs", "github", "links",
		"loopDetection", "media", "message", "profile", "sessions", "sessions_spawn", "subagents", "swarm",
		"toolsBySender", "toolSearch", "updatePlan",
	},
	"tools.web": {"x_search"},
	"tools.web.search": {
		"brave", "cacheTtlMinutes", "firecrawl", "gemini", "grok", "kimi", "openaiCodex", "perplexity",
	},
	"tools.web.fetch": {
		"cacheTtlMinutes", "firecrawl", "headers", "maxCharsCap", "maxRedirects", "maxResponseBytes", "provider", "readability",
		"ssrfPolicy", "timeoutSeconds",
	},
	"agents.entries.tools": {
		"byProvider", "codeMode", "elevated", "exec", "fs", "github", "loopDetection", "message", "profile",
		"swarm", "toolsBySender",
	},
	"session": {
		"agentToAgent", "dmScope", "groupScope", "identityLinks", "idleMinutes", "maintenance", "notifyOnCreate",
		"parentForkMaxTokens", "reset", "resetByChannel", "resetByType", "resetTriggers", "sendPolicy", "sharing",
		"store", "threadBindings", "typingIntervalSeconds", "typingMode", "writeLock",
	},
	"agents.model": {"timeoutMs"},
	"models":       {"bedrockDiscovery", "catalogRefresh", "pricing"},
	"models.providers": {
		"agentRuntime", "contextTokens", "contextWindow", "injectNumCtxForOpenAICompat", "localService",
		"maxTokens", "params", "region", "request", "timeoutSeconds",
	},
	"models.providers.models": {
		"agentRuntime", "baseUrl", "compat", "contextTokens", "mediaInput", "metadataSource", "params",
		"thinkingLevelMap",
	},
	"models.providers.models.cost": {"tieredPricing"},
	"gateway": {
		"allowRealIpFallback", "channelHealthCheckMinutes", "channelMaxRestartsPerHour",
		"channelStaleEventThresholdMinutes", "cliAgents", "handshakeTimeoutMs",
		"http", "mode", "nodes", "portals", "publicOrigin", "push", "reload", "remote", "roles", "tailscale",
		"terminal", "tools", "trustedProxies", "webchat",
	},
	"mcp":          {"apps", "servers", "sessionIdleTtlMs"},
	"gateway.auth": {"allowTailscale", "identityScopes", "rateLimit", "trustedProxy"},
	"gateway.tls":  {"autoGenerate", "caPath"},
	"gateway.controlUi": {
		"allowExternalEmbedUrls", "allowInsecureAuth", "automaticallyFetchFavicons", "basePath", "chatMessageMaxWidth", "communityInvite",
		"dangerouslyAllowHostHeaderOriginFallback", "dangerouslyDisableDeviceAuth", "embedSandbox", "environment", "experimental",
		"root", "sessionObserver", "toolTitles",
	},
	"top": {
		"accessGroups", "acp", "approvals", "attachments", "audio", "audit", "auth", "bindings", "broadcast",
		"browser", "canvasHost", "channels", "cli", "cloudWorkers", "commands", "commitments", "crestodian",
		"cron", "desktop", "diagnostics", "discovery", "env", "hooks", "logging", "marketplaces", "media",
		"memory", "messages", "meta", "nodeHost", "plugins", "proxy", "security", "skills", "surfaces",
		"talk", "telemetry", "transcripts", "tts", "tui", "ui", "update", "web", "wizard", "worktreeAcceleration",
		"worktreeRoot",
	},
}

// Backends are sandbox backends that OpenClaw has and Atoll has not.
var Backends = []string{"ssh", "openshell", "crabbox"}
