package ws

import (
	"slices"
	"strings"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// levelNames are settings that are stored as they are.
func levelNames() []string {
	return []string{"thinkingLevel", "verboseLevel", "reasoningLevel", "responseUsage", "sendPolicy", "groupActivation", "traceLevel", "contextWindow"}
}

// sandboxSettings are settings that would move an agent out of its sandbox. Only
// their present values are accepted.
func sandboxSettings() map[string]string {
	return map[string]string{"elevatedLevel": "off", "execHost": "sandbox", "execSecurity": "", "execAsk": "", "execNode": "", "sandboxMode": "", "permissionMode": ""}
}

// uiSettings are settings of user interfaces that are accepted and not stored.
func uiSettings() []string {
	return []string{"autoLabel", "icon", "color", "category", "boardFace", "boardPresentation", "statusNote", "attention", "ttlMinutes", "archived", "pinned", "unread",
		"fastMode", "toolOverrides", "nativeRuntimeConsent", "agentRuntime", "completionOwnerSessionKey", "inheritedToolPolicyVersion", "inheritedToolAllow", "inheritedToolDeny"}
}

func patchShape() shape {
	s := keyShape(optional(word, true, "expectedLifecycleRevision"),
		optional(anything, true, "expectedPermissionMode", "expectedSandboxMode", "expectedNativeRuntimeConsent", "expectedToolOverrides", "expectedMarkedUnreadAt"),
		optional(anything, true, uiSettings()...),
		shape{
			{name: "label", kind: word, null: true, max: 512}, {name: "model", kind: word, null: true, max: maxWord}, {name: "outboundHeaders", kind: record, null: true},
			{name: "spawnedBy", kind: word, null: true}, {name: "spawnDepth", kind: integer, null: true},
		})
	for _, name := range levelNames() {
		s = append(s, field{name: name, kind: word, null: true, max: 64, v4: name == "traceLevel" || name == "contextWindow"})
	}
	for name := range sandboxSettings() {
		s = append(s, field{name: name, kind: word, null: true, max: 64, v4: name == "sandboxMode" || name == "permissionMode"})
	}
	return s
}

// patch changes the settings of a session; null clears.
func (c *call) patch() (any, error) {
	var members map[string]jsontext.Value
	if err := c.bind(&members); err != nil {
		return nil, err
	}
	key, err := c.session()
	if err != nil {
		return nil, err
	}
	change, err := changeOf(members)
	if err != nil {
		return nil, err
	}
	e, err := c.server.Sessions.Patch(c.ctx, c.view(), key, *change)
	if err != nil {
		return nil, err
	}
	return fields{"ok": true, "path": multiplePaths, "key": e.Key, "entry": c.entry(e), "resolved": c.resolved(e)}, nil
}

// changeOf returns the changes of a patch.
func changeOf(members map[string]jsontext.Value) (*session.Patch, error) {
	p := &session.Patch{Levels: map[string]*string{}}
	for name, value := range members {
		if err := applySetting(p, name, value); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func applySetting(p *session.Patch, name string, value jsontext.Value) error {
	word := ""
	if value.Kind() == '"' {
		_ = jsonx.Unmarshal(value, &word) // it is a string
	}
	allowed, isWall := sandboxSettings()[name]
	switch {
	case name == "label":
		p.Label = &word
	case name == "model":
		p.Model = &word
	case name == "outboundHeaders":
		return headers(p, value)
	case name == session.ThinkingLevel && word != "" && !slices.Contains(thinkingLevels(), word):
		return invalid("invalid thinkingLevel (use " + strings.Join(thinkingLevels(), "|") + ")")
	case slices.Contains(levelNames(), name):
		p.Levels[name] = &word
	case isWall && value.Kind() != 'n' && word != allowed:
		return invalid(name + " cannot be changed: agents of this gateway work in sandboxes")
	case slices.Contains(uiSettings(), name):
		return invalid(name + " is not kept by this gateway")
	}
	return nil
}

// headers sets the headers of the session's model calls, which package session
// checks.
func headers(p *session.Patch, value jsontext.Value) error {
	all := map[string]string{}
	if value.Kind() == '{' && jsonx.Unmarshal(value, &all) != nil {
		return invalid("invalid sessions.patch params: at /outboundHeaders: must be an object of strings")
	}
	p.Headers = &all
	return nil
}
