package ws

// table is the table of all methods. Scopes are OpenClaw's, by version.
func table() map[string]*method {
	all := []*method{
		{name: "agent", scopes: both(scopeWrite), params: agentShape(), do: (*call).agent},
		{name: "agent.wait", scopes: both(scopeWrite), params: waitShape(), waits: true, do: (*call).wait},
		{name: "agent.identity.get", scopes: both(scopeRead), params: shape{{name: "agentId", kind: word}, {name: "sessionKey", kind: text}}, do: (*call).identity},
		{name: "agents.list", scopes: both(scopeRead), params: shape{}, do: (*call).agents},
		{name: "chat.abort", scopes: both(scopeWrite), params: abortShape(), do: (*call).abort},
		{name: "chat.history", scopes: both(scopeRead), params: historyShape(), do: (*call).history},
		{name: "chat.send", scopes: both(scopeWrite), params: sendShape(), do: (*call).send},
		{name: "commands.list", v4: true, scopes: both(scopeRead), params: commandsShape(), do: (*call).commands},
		{name: "health", params: shape{{name: "probe", kind: flag}, {name: "includeSensitive", kind: flag, v4: true}}, do: (*call).healthOf},
		{name: "last-heartbeat", scopes: both(scopeRead), params: shape{}, do: (*call).heartbeat},
		{name: "models.list", scopes: both(scopeRead), params: modelsShape(), do: (*call).models},
		{name: "plugin.approval.list", v4: true, scopes: both(scopeApprovals), params: shape{}, do: (*call).approvals},
		{name: "question.list", v4: true, scopes: both("operator.questions"), params: shape{}, do: (*call).questions},
		{name: "sessions.compact", scopes: both(scopeAdmin), params: compactShape(), waits: true, do: (*call).compact},
		{name: "sessions.delete", scopes: both(scopeAdmin), params: deleteShape(), waits: true, do: (*call).remove},
		{name: "sessions.describe", v4: true, scopes: both(scopeRead), params: describeShape(), do: (*call).describe},
		{name: "sessions.list", scopes: both(scopeRead), params: listShape(), do: (*call).sessions},
		{name: "sessions.messages.subscribe", v4: true, scopes: both(scopeRead), params: shape{{name: "key", kind: word, need: true}, {name: "agentId", kind: word}}, do: (*call).subscribeMessages},
		{name: "sessions.messages.unsubscribe", v4: true, scopes: both(scopeRead), params: shape{{name: "key", kind: word, need: true}, {name: "agentId", kind: word}}, do: (*call).unsubscribeMessages},
		{name: "sessions.patch", scopes: [2]string{scopeAdmin, scopeWrite}, params: patchShape(), do: (*call).patch},
		{name: "sessions.reset", scopes: both(scopeAdmin), params: resetShape(), waits: true, do: (*call).reset},
		{name: "sessions.subscribe", v4: true, scopes: both(scopeRead), params: shape{}, do: (*call).subscribe},
		{name: "sessions.unsubscribe", v4: true, scopes: both(scopeRead), params: shape{}, do: (*call).unsubscribe},
		{name: "status", scopes: both(scopeRead), params: shape{{name: "includeChannelSummary", kind: flag, v4: true}}, do: (*call).status},
		{name: "system-presence", scopes: both(scopeRead), params: shape{}, do: (*call).systemPresence},
	}
	methods := map[string]*method{}
	for _, m := range all {
		methods[m.name] = m
	}
	return methods
}

// optional returns members that may be absent.
func optional(k kind, v4 bool, names ...string) (s shape) {
	for _, name := range names {
		s = append(s, field{name: name, kind: k, v4: v4})
	}
	return s
}

func join(parts ...shape) (s shape) {
	for _, p := range parts {
		s = append(s, p...)
	}
	return s
}
