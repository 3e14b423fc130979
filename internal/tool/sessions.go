package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sessions are the conversations that a session may look at.
type Sessions interface {
	List(ctx context.Context, most int) ([]SessionInfo, error)
	// History returns the last messages of a conversation, oldest first; an id
	// of "" is the session's own.
	History(ctx context.Context, id string, most int) ([]SessionMessage, error)
}

// SessionInfo is one conversation in a list.
type SessionInfo struct {
	ID      string    `json:"sessionId"`
	Own     bool      `json:"own"`
	Changed time.Time `json:"updatedAt"`
	Size    int64     `json:"bytes"`
	Title   string    `json:"title"` // its first words
}

// SessionMessage is one message of a conversation.
type SessionMessage struct {
	Role  string   `json:"role"`
	Text  string   `json:"text,omitempty"`
	Calls []string `json:"calls,omitempty"` // names of the tools that it calls
}

// The limits of what session tools show.
const (
	maxSessions       = 200
	defaultSessions   = 50
	maxHistory        = 200
	defaultHistory    = 20
	maxHistoryMessage = 4000 // bytes of one message
)

var errNoSessions = errors.New("no conversations are kept here")

type sessionsListArgs struct {
	Limit int64 `json:"limit,omitzero" jsonschema:"Most conversations to show, the latest first. Default 50, at most 200."`
}

func (a *sessionsListArgs) check() (problems []error) {
	whole(&problems, "limit", a.Limit, maxSessions)
	return problems
}

func sessionsListTool() Tool {
	return define(Tool{
		Name: "sessions_list", Ours: true,
		Description: "List the conversations you may look at: id, age, size, first words.",
	}, runSessionsList)
}

func runSessionsList(ctx context.Context, c *call, a *sessionsListArgs) (*Result, error) {
	if c.set.Sessions == nil {
		return nil, errNoSessions
	}
	list, err := c.set.Sessions.List(ctx, orDefault(a.Limit, defaultSessions))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return &Result{Text: "there are no conversations", Details: []SessionInfo{}}, nil
	}
	var b strings.Builder
	for _, s := range list {
		own := ""
		if s.Own {
			own = ", this conversation"
		}
		fmt.Fprintf(&b, "%s  (%s, %s%s)  %s\n", visible(s.ID), s.Changed.UTC().Format(time.RFC3339), sizeText(s.Size), own, oneLine(s.Title))
	}
	return &Result{Text: b.String(), Details: list}, nil
}

type sessionsHistoryArgs struct {
	SessionID    string `json:"sessionId,omitzero" jsonschema:"Which conversation, as sessions_list names it. Default: this one."`
	Limit        int64  `json:"limit,omitzero" jsonschema:"Most messages to show, the last ones. Default 20, at most 200."`
	IncludeTools bool   `json:"includeTools,omitzero" jsonschema:"Show the results of tools too."`
}

func (a *sessionsHistoryArgs) check() (problems []error) {
	whole(&problems, "limit", a.Limit, maxHistory)
	return problems
}

func sessionsHistoryTool() Tool {
	return define(Tool{
		Name: "sessions_history", Ours: true,
		Description: "Show the last messages of a conversation.",
	}, runSessionsHistory)
}

func runSessionsHistory(ctx context.Context, c *call, a *sessionsHistoryArgs) (*Result, error) {
	if c.set.Sessions == nil {
		return nil, errNoSessions
	}
	messages, err := c.set.Sessions.History(ctx, a.SessionID, maxHistory)
	if err != nil {
		return nil, err
	}
	shown := messages[:0:0]
	for _, m := range messages {
		if m.Role != "tool" || a.IncludeTools {
			m.Text = cutMiddle(m.Text, maxHistoryMessage)
			shown = append(shown, m)
		}
	}
	shown = shown[max(0, len(shown)-orDefault(a.Limit, defaultHistory)):]
	return historyResult(shown), nil
}

// historyResult marks every line of what was said, so that old words are not
// taken for new instructions.
func historyResult(messages []SessionMessage) *Result {
	if len(messages) == 0 {
		return &Result{Text: "nothing was said yet", Details: []SessionMessage{}}
	}
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s:\n", m.Role)
		for line := range strings.Lines(m.Text) {
			fmt.Fprintf(&b, "  | %s\n", strings.TrimRight(line, "\n"))
		}
		if len(m.Calls) > 0 {
			fmt.Fprintf(&b, "  (called %s)\n", strings.Join(m.Calls, ", "))
		}
	}
	return &Result{Text: b.String(), Details: messages}
}

// orDefault is a number that may not have been given.
func orDefault(given int64, usual int) int {
	if given > 0 {
		return int(given)
	}
	return usual
}
