package config

// acceptedKeys are keys that OpenClaw's own schema has in parts of the file
// that Atoll reads too. A file that uses them loads; each one found gives a
// warning, so nobody believes that it had an effect. A key that is in neither
// list is an error: nothing that looks like a setting is skipped in silence.
//
// The names are those of the releases 2026.2 to 2026.9.
var acceptedKeys = map[string][]string{
	"agents.defaults": {
		"additionalSystemPrompt", "agentRuntime", "authInheritance", "blockStreamingBreak", "blockStreamingChunk",
		"blockStreamingCoalesce", "blockStreamingDefault", "bootstrapMaxChars", "bootstrapPromptTruncationWarning",
		"bootstrapTotalMaxChars", "cliBackends", "compaction", "contextInjection", "contextLimits", "contextPruning",
		"contextTokens", "cwd", "decisionModel", "elevatedDefault", "embeddedAgent", "embeddedPi", "envelopeElapsed",
		"envelopeTimestamp", "envelopeTimezone", "experimental", "fastModeDefault", "heartbeat", "humanDelay",
		"imageGenerationModel", "imageMaxDimensionPx", "imageModel", "imageQuality", "maxConcurrent", "mediaMaxMb",
		"mediaModels", "memorySearch", "modelPolicy", "modelSelectionScope", "models", "params", "pdfMaxBytesMb",
		"pdfMaxMb", "pdfMaxPages", "pdfModel", "reasoningDefault", "repoRoot", "sessionStore", "silentReply",
		"skipOptionalBootstrapFiles", "startupContext", "subagents", "systemAgent", "thinkingDefault", "timeFormat",
		"timeoutSeconds", "toolProgressDetail", "typingIntervalSeconds", "typingMode", "userTimezone", "utilityModel",
		"verboseDefault", "voiceModel",
	},
	"agents.entries": {
		"agentDir", "bootstrapMaxChars", "bootstrapTotalMaxChars", "contextInjection", "contextLimits", "cwd",
		"decisionModel", "description", "embeddedAgent", "experimental", "fastModeDefault", "groupChat", "heartbeat",
		"humanDelay", "identity", "memory", "memorySearch", "modelPolicy", "models", "name", "params",
		"reasoningDefault", "runtime", "skillsLimits", "subagents", "thinkingDefault", "toolProgressDetail", "tts",
		"typingMode", "utilityModel", "verboseDefault",
	},
	"tools": {
		"agentToAgent", "byProvider", "codeMode", "elevated", "exec", "fs", "github", "links", "loopDetection",
		"media", "message", "profile", "sessions", "sessions_spawn", "subagents", "swarm", "toolSearch",
		"toolsBySender", "updatePlan", "web",
	},
	"agents.entries.tools": {
		"byProvider", "codeMode", "elevated", "exec", "fs", "github", "loopDetection", "message", "profile", "swarm",
		"toolsBySender",
	},
	"session": {
		"agentToAgent", "dmScope", "groupScope", "identityLinks", "idleMinutes", "maintenance", "maxRecentTurns",
		"notifyOnCreate", "parentForkMaxTokens", "reset", "resetByChannel", "resetByType", "resetTriggers",
		"sendPolicy", "sharing", "store", "threadBindings", "transcriptRetentionDays", "typingIntervalSeconds",
		"typingMode",
	},
	"models": {"bedrockDiscovery", "catalogRefresh"},
	"models.providers": {
		"agentRuntime", "injectNumCtxForOpenAICompat", "localService", "maxTokens", "params", "region", "request",
		"timeoutSeconds",
	},
	"models.providers.models": {
		"agentRuntime", "baseUrl", "compat", "contextTokens", "mediaInput", "metadataSource", "params",
		"thinkingLevelMap",
	},
	"models.providers.models.cost": {"tieredPricing"},
	"gateway": {
		"allowRealIpFallback", "auth", "bind", "channelHealthCheckMinutes", "cliAgents", "controlUi",
		"customBindHost", "http", "mode", "nodes", "portals", "publicOrigin", "push", "reload", "remote", "roles",
		"tailscale", "terminal", "tls", "tools", "trustedProxies",
	},
	"sandbox.ssh": {
		"certificateData", "certificateFile", "command", "identityData", "identityFile", "knownHostsData",
		"knownHostsFile", "strictHostKeyChecking", "target", "updateHostKeys", "workspaceRoot",
	},
	"top": {
		"accessGroups", "acp", "approvals", "attachments", "audio", "auth", "bindings", "broadcast", "browser",
		"canvasHost", "channels", "cloudWorkers", "commands", "cron", "desktop", "diagnostics", "discovery", "env",
		"hooks", "logging", "mcp", "media", "memory", "messages", "meta", "nodeHost", "plugins", "proxy", "secrets",
		"security", "skills", "surfaces", "talk", "telemetry", "transcripts", "tts", "ui", "update", "web", "wizard",
		"worktreeAcceleration", "worktreeRoot",
	},
}

// foreignBackends are sandbox backends that OpenClaw has and Atoll has not.
var foreignBackends = []string{"ssh", "openshell", "crabbox"}
