package ws

import (
	"errors"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// multiplePaths is sent instead of a path of the host.
const multiplePaths = "(multiple)"

func listShape() shape {
	return join(
		shape{{name: "limit", kind: integer, min: 1}, {name: "activeMinutes", kind: integer, min: 1}},
		optional(flag, false, "includeGlobal", "includeUnknown", "includeDerivedTitles", "includeLastMessage"),
		optional(word, false, "spawnedBy", "agentId", "label"), optional(text, false, "search"),
		shape{{name: "offset", kind: integer, v4: true}},
		optional(flag, true, "activeOnly", "requireLastInteraction", "excludeSubagents", "excludeCron", "excludeSystem", "configuredAgentsOnly", "includeActivitySummary", "pinned", "hasBoard", "ownerFirst", "involvingMe", "includePeople"),
		optional(text, true, "sortBy", "group", "boardFace"), optional(word, true, "projectId", "workspaceDir", "creatorId", "ownerId", "involvingProfileId"),
		optional(record, true, "profileRelation"), optional(anything, true, "archived"),
	)
}

// defaultList is the number of sessions in a list without a limit.
const defaultList = 100

// sessions lists the sessions that the token may see, the latest first.
func (c *call) sessions() (any, error) {
	p := struct {
		Limit   int    `json:"limit"`
		Offset  int    `json:"offset"`
		Minutes int64  `json:"activeMinutes"`
		Agent   string `json:"agentId"`
		Label   string `json:"label"`
		Search  string `json:"search"`
	}{Limit: defaultList}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	p.Limit = min(p.Limit, session.MaxList)
	filter := session.Filter{Agent: p.Agent, Label: p.Label, Search: p.Search, Most: min(p.Offset+p.Limit+1, session.MaxList)}
	if p.Minutes > 0 {
		filter.Since = time.Now().Add(-time.Duration(min(p.Minutes, maxSeconds)) * time.Minute)
	}
	entries, err := c.server.Sessions.List(c.ctx, c.view(), filter)
	if err != nil {
		return nil, err
	}
	entries = entries[min(p.Offset, len(entries)):]
	more := len(entries) > p.Limit
	rows := []fields{}
	for i := range entries[:min(len(entries), p.Limit)] {
		rows = append(rows, c.row(&entries[i]))
	}
	f := fields{"ts": time.Now().UnixMilli(), "path": multiplePaths, "count": len(rows), "defaults": c.defaults(), "sessions": rows}
	if c.version >= protocol.V4 {
		f["totalCount"], f["limitApplied"], f["hasMore"], f["owners"], f["nextOffset"] = p.Offset+len(entries), p.Limit, more, []any{}, nil
		if more {
			f["nextOffset"] = p.Offset + len(rows)
		}
	}
	return f, nil
}

// defaults are the settings of sessions without their own.
func (c *call) defaults() fields {
	provider, model, window := c.server.defaultModel(c.ctx)
	f := fields{"modelProvider": provider, "model": model, "contextTokens": window}
	if c.version >= protocol.V4 {
		f["agentRuntime"] = fields{"id": "auto", "cloudPlacementSupported": false, "devicePlacementSupported": false, "source": "implicit"}
		f["thinkingLevels"], f["thinkingOptions"], f["thinkingDefault"] = []fields{{"id": "off", "label": "off"}}, []string{"off"}, "off"
		f["modelSelectionTarget"] = "session"
	}
	return f
}

// row returns a session in a list.
func (c *call) row(e *session.Entry) fields {
	f := fields{
		"key": e.Key, "kind": "direct", "updatedAt": e.Updated.UnixMilli(), "sessionId": e.ID, "abortedLastRun": e.Aborted,
		"inputTokens": e.Total.Input, "outputTokens": e.Total.Output, "totalTokens": e.Last.Total(), "totalTokensFresh": true,
	}
	f["modelProvider"], f["model"] = c.model(e)
	if _, _, window := c.server.defaultModel(c.ctx); window > 0 {
		f["contextTokens"] = window
	}
	if e.Label != "" {
		f["label"], f["displayName"] = e.Label, e.Label
	}
	for name, level := range e.Levels {
		f[name] = level
	}
	if c.version >= protocol.V4 {
		isMain := strings.HasSuffix(e.Key, ":main")
		f["agentId"], f["isMain"], f["isBackground"], f["classification"] = e.Agent, isMain, false, "custom"
		if isMain {
			f["classification"] = "main"
		}
		f["archived"], f["pinned"], f["unread"], f["visibility"], f["lastActivityAt"] = false, false, false, "shared", e.Updated.UnixMilli()
		f["hasActiveRun"], f["activeRunIds"] = c.active(e)
	}
	return f
}

// active returns the tasks of a session that run or wait.
func (c *call) active(e *session.Entry) (bool, []string) {
	ids := c.server.Sessions.Active(e)
	return len(ids) > 0, ids
}

// model returns the model of the session's next task.
func (c *call) model(e *session.Entry) (provider, model string) {
	name := e.Model
	if name == "" {
		name = e.LastModel
	}
	provider, model, ok := strings.Cut(name, "/")
	if !ok {
		provider, model, _ = c.server.defaultModel(c.ctx)
	}
	return provider, model
}

// entry returns the stored state of a session.
func (c *call) entry(e *session.Entry) fields {
	f := fields{
		"sessionId": e.ID, "updatedAt": e.Updated.UnixMilli(), "systemSent": e.LastModel != "", "abortedLastRun": e.Aborted,
		"inputTokens": e.Total.Input, "outputTokens": e.Total.Output, "totalTokens": e.Last.Total(), "totalTokensFresh": true,
	}
	f["modelProvider"], f["model"] = c.model(e)
	if provider, model, ok := strings.Cut(e.Model, "/"); ok {
		f["providerOverride"], f["modelOverride"] = provider, model
	}
	if e.Label != "" {
		f["label"] = e.Label
	}
	for name, level := range e.Levels {
		f[name] = level
	}
	if len(e.Headers) > 0 {
		f["outboundHeaders"] = e.Headers
	}
	return f
}

func (c *call) resolved(e *session.Entry) fields {
	provider, model := c.model(e)
	f := fields{"modelProvider": provider, "model": model}
	if c.version >= protocol.V4 {
		f["agentRuntime"], f["runtimeSelectionLocked"] = fields{"id": "openclaw", "source": "implicit"}, false
	}
	return f
}

func keyShape(more ...shape) shape {
	return join(append([]shape{{{name: "key", kind: word, need: true}, {name: "agentId", kind: word, v4: true}, {name: "expectedSessionId", kind: word, v4: true}}}, more...)...)
}

func resetShape() shape {
	return keyShape(shape{{name: "reason", kind: text, enum: []string{"new", "reset"}}})
}

func deleteShape() shape {
	return keyShape(optional(flag, false, "deleteTranscript", "emitLifecycleHooks"), optional(word, true, "expectedLifecycleRevision"), optional(integer, true, "expectedSessionUpdatedAt"), optional(flag, true, "archivedOnly"))
}

func compactShape() shape { return keyShape(shape{{name: "maxLines", kind: integer, min: 1}}) }

// sessionParams are the parameters of methods on one session.
type sessionParams struct {
	Key      string `json:"key"`
	Agent    string `json:"agentId"`
	Expected string `json:"expectedSessionId"`
}

// session returns the key of the session, and refuses one whose id is no longer the
// expected one.
func (c *call) session() (string, error) {
	var p sessionParams
	if err := c.bind(&p); err != nil {
		return "", err
	}
	key := withAgent(p.Agent, p.Key)
	if p.Expected == "" {
		return key, nil
	}
	e, err := c.server.Sessions.Get(c.ctx, c.view(), key)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return "", err
	}
	if err != nil || e.ID != p.Expected {
		return "", invalid("the session is not the expected one any more")
	}
	return key, nil
}

// named returns the parsed key.
func (c *call) named() (session.Key, error) {
	name, err := c.session()
	if err != nil {
		return session.Key{}, err
	}
	return session.ParseKey(name, c.server.defaultAgent(c.ctx))
}

// reset starts a new transcript of a session.
func (c *call) reset() (any, error) {
	key, err := c.session()
	if err != nil {
		return nil, err
	}
	e, err := c.server.Sessions.Reset(c.ctx, c.view(), key)
	if errors.Is(err, session.ErrNotFound) { // OpenClaw creates it
		e, err = c.server.Sessions.Patch(c.ctx, c.view(), key, session.Patch{})
	}
	if err != nil {
		return nil, err
	}
	f := fields{"ok": true, "key": e.Key, "entry": c.entry(e)}
	if c.version >= protocol.V4 {
		f["resolved"] = c.resolved(e)
	}
	return f, nil
}

// remove deletes a session; the main session stays.
func (c *call) remove() (any, error) {
	key, err := c.named()
	if err != nil {
		return nil, err
	}
	if key.Text == "agent:"+key.Agent+":main" {
		return nil, invalid("Cannot delete the main session (" + key.Text + ").")
	}
	_, err = c.server.Sessions.Delete(c.ctx, c.view(), key.Text)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, err
	}
	return fields{"ok": true, "key": key.Text, "deleted": err == nil, "archived": []string{}}, nil
}

// compact shortens a session's transcript.
func (c *call) compact() (any, error) {
	key, err := c.named()
	if err != nil {
		return nil, err
	}
	before, after, err := c.server.Sessions.Compact(c.ctx, c.view(), key.Text)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return fields{"ok": true, "key": key.Text, "compacted": false, "reason": "no sessionId"}, nil
	case err != nil:
		return nil, err
	case before == after:
		return fields{"ok": true, "key": key.Text, "compacted": false, "reason": "nothing to compact"}, nil
	}
	return fields{"ok": true, "key": key.Text, "compacted": true, "kept": after}, nil
}

func describeShape() shape {
	return keyShape(optional(flag, true, "includeDerivedTitles", "includeLastMessage"))
}

// describe returns one session as in the list, or null.
func (c *call) describe() (any, error) {
	key, err := c.session()
	if err != nil {
		return nil, err
	}
	e, err := c.server.Sessions.Get(c.ctx, c.view(), key)
	if errors.Is(err, session.ErrNotFound) {
		return fields{"session": nil}, nil
	}
	if err != nil {
		return nil, err
	}
	return fields{"session": c.row(e)}, nil
}

// subscribe has no effect: every connection receives the events of its account's
// sessions.
func (c *call) subscribe() (any, error)   { return fields{"subscribed": true}, nil }
func (c *call) unsubscribe() (any, error) { return fields{"subscribed": false}, nil }

func (c *call) subscribeMessages() (any, error)   { return c.messageSubscription(true) }
func (c *call) unsubscribeMessages() (any, error) { return c.messageSubscription(false) }

func (c *call) messageSubscription(subscribed bool) (any, error) {
	key, err := c.named()
	if err != nil {
		return nil, err
	}
	return fields{"subscribed": subscribed, "key": key.Text}, nil
}

// thinkingLevels are the names of the levels of thinking.
func thinkingLevels() (names []string) {
	for _, level := range chat.Levels() {
		names = append(names, string(level))
	}
	return names
}
