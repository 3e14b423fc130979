package runcmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
)

// conversation is the message, and what was said before it where a run says so.
func (o *agentOptions) conversation(cmd *cobra.Command, e *env) (message string, history []chat.Message, err error) {
	if !cmd.Flags().Changed("messages") {
		message, err = o.read(cmd, e)
		return message, nil, err
	}
	text, err := os.ReadFile(o.messages)
	if err != nil {
		return "", nil, fmt.Errorf("--messages: %w", err)
	}
	var all []chat.Message
	if err := json.Unmarshal(text, &all); err != nil {
		return "", nil, fmt.Errorf("--messages: %w", err)
	}
	if len(all) == 0 || all[len(all)-1].Role != chat.User {
		return "", nil, errors.New("--messages: the last message must be the user's")
	}
	last := len(all) - 1
	return all[last].Text, all[:last], nil
}

// The bounds of pieces of an agent's words. Each is an event of the run.
const (
	maxPiece  = 512                    // bytes that are held back for a whole line
	pieceTime = 150 * time.Millisecond // that words are held back
	maxPieces = 4000                   // of a run; after them, words are held back for a whole line
)

// eventLines prints what happens, a line each. What the agent says comes in
// pieces of a word: they are put together to those of a moment.
type eventLines struct {
	env *env

	mu      sync.Mutex
	text    bytes.Buffer
	printed time.Time // when words were printed last
	pieces  int
	due     *time.Timer // prints what is held back; nil if nothing is
}

func (l *eventLines) event(e agent.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Type != agent.TextDelta {
		l.flush()
		l.print(e)
		return
	}
	l.text.WriteString(e.Text)
	switch {
	case l.text.Len() > maxPiece || bytes.HasSuffix(l.text.Bytes(), []byte("\n")):
		l.flush()
	case l.pieces >= maxPieces || l.due != nil:
	default:
		l.flushLater(pieceTime - time.Since(l.printed))
	}
}

// flushLater prints what is held back after a time. The caller holds the lock.
func (l *eventLines) flushLater(after time.Duration) {
	l.pieces++
	if after <= 0 {
		l.flush()
		return
	}
	l.due = time.AfterFunc(after, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flush()
	})
}

// flush prints what is held back. The caller holds the lock.
func (l *eventLines) flush() {
	if l.due != nil {
		l.due.Stop()
		l.due = nil
	}
	if l.text.Len() > 0 {
		l.print(agent.Event{Type: agent.TextDelta, Text: l.text.String()})
		l.text.Reset()
		l.printed = time.Now()
	}
}

// print writes one event. That it cannot be written stops no agent.
func (l *eventLines) print(e agent.Event) {
	if line, err := json.Marshal(&e); err == nil {
		_, _ = l.env.ForeignErr().Write(append(line, '\n'))
	}
}
