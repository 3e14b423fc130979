package policy

import (
	"slices"
	"strings"
)

// toolAliases are other names under which a tool is known.
var toolAliases = map[string]string{
	"bash":        "exec",
	"apply-patch": "apply_patch",
	"cron":        "automations",
}

// defaultAllow is what a sandboxed session may use when nothing is configured.
// Web, memory, messages and tools of MCP servers are left out on purpose.
var defaultAllow = []string{
	"exec", "process", "read", "ls", "write", "edit", "apply_patch", "view_image",
	"sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn", "sessions_yield",
	"subagents", "session_status",
}

// defaultDeny is what a sandboxed session must ask for by name: tools that act
// outside of the sandbox, and the channels.
var defaultDeny = []string{
	"browser", "canvas", "computer", "mobile_ui", "nodes", "automations", "gateway",
	"feishu", "googlechat", "nostr", "buzz", "msteams", "mattermost", "nextcloud-talk", "matrix", "raft", "a2a",
	"line", "zalo", "clickclack", "zalouser", "sms", "synology-chat", "tlon", "discord", "imessage", "irc", "reef",
	"signal", "slack", "telegram", "twitch", "whatsapp",
}

// toolGroups are the names that stand for several tools.
var toolGroups = map[string][]string{
	"group:fs":      {"ls", "read", "write", "edit", "apply_patch"},
	"group:runtime": {"exec", "process", "code_execution", "secrets"},
	"group:web":     {"web_search", "web_fetch", "x_search"},
	"group:memory":  {"memory_search", "memory_get"},
	"group:sessions": {
		"sessions", "sessions_list", "sessions_history", "sessions_search",
		"conversations_list", "conversations_send", "conversations_turn",
		"sessions_send", "sessions_spawn", "github_identity_status", "github_publish", "agents_wait", "sessions_yield",
		"subagents", "session_status", "suggest_task", "dismiss_task",
	},
	"group:ui":         {"browser", "screen", "theme", "dashboard", "terminal", "portal", "canvas", "show_widget"},
	"group:messaging":  {"message"},
	"group:automation": {"heartbeat_respond", "automations", "gateway", "plugins", "openclaw"},
	"group:nodes":      {"nodes", "computer", "mobile_ui"},
	"group:agents": {
		"agents_list", "get_goal", "create_goal", "update_goal", "progress_card", "ask_user", "skill_workshop",
	},
	"group:media": {"view_image", "image_generate", "music_generate", "video_generate", "tts", "pdf"},
}

// openclawGroups make up group:openclaw: everything but files, commands and the
// canvas.
var openclawGroups = []string{
	"group:runtime", "group:web", "group:memory", "group:sessions", "group:ui", "group:messaging",
	"group:automation", "group:nodes", "group:agents", "group:media",
}

// toolsOf lists what a normalised entry stands for. A group that is not known
// stands for itself: it may belong to a plugin.
func toolsOf(entry string) []string {
	if entry == "group:openclaw" {
		var members []string
		for _, group := range openclawGroups {
			members = append(members, toolGroups[group]...)
		}
		return slices.DeleteFunc(members, func(tool string) bool {
			return tool == "exec" || tool == "process" || tool == "canvas"
		})
	}
	if members, ok := toolGroups[entry]; ok {
		return members
	}
	return []string{entry}
}

// NormalizeTool is the name under which a tool is looked up.
func NormalizeTool(name string) string {
	name = lower(trim(name))
	if alias, ok := toolAliases[name]; ok {
		return alias
	}
	return name
}

// rule is one pattern of a list, and the entry that it was written as.
type rule struct{ pattern, written string }

// rules expands the groups of a list and drops blank and repeated patterns.
func rules(list []string) []rule {
	var expanded []rule
	seen := map[string]bool{}
	for _, written := range list {
		name := NormalizeTool(written)
		for _, pattern := range toolsOf(name) {
			if pattern != "" && !seen[pattern] {
				seen[pattern] = true
				expanded = append(expanded, rule{pattern, name})
			}
		}
	}
	return expanded
}

func patterns(list []rule) []string {
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.pattern
	}
	return names
}

// firstMatch finds the rule that applies to a normalised name.
func firstMatch(list []rule, name string) (rule, bool) {
	at := slices.IndexFunc(list, func(r rule) bool { return globMatch(r.pattern, name) })
	if at < 0 {
		return rule{}, false
	}
	return list[at], true
}

// globMatch compares a name with a pattern in which "*" stands for any text.
// It looks for the parts between the stars from left to right, each at its
// first place: that is enough, and no pattern makes it slow.
func globMatch(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	tail := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		_, after, found := strings.Cut(name, part)
		if !found {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, tail)
}
