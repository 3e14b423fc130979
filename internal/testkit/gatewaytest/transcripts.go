package gatewaytest

import (
	"context"
	"sync"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

// Transcripts are the conversations that a worker of sessions keeps, in memory. The
// zero value has none.
type Transcripts struct {
	mu  sync.Mutex
	all map[string][]chat.Message // by account and transcript
}

// Add adds the message of a job and its answer.
func (t *Transcripts) Add(job *session.Job, answer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[string][]chat.Message{}
	}
	name := job.Account + "/" + job.Session
	t.all[name] = append(t.all[name], chat.Message{Role: chat.User, Text: job.Message}, chat.Message{Role: chat.Assistant, Text: answer})
}

// Kept reports whether there is a transcript of a session.
func (t *Transcripts) Kept(e *session.Entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[e.Account+"/"+e.ID] != nil
}

// History returns the last messages of a session.
func (t *Transcripts) History(_ context.Context, e *session.Entry, most int) ([]chat.Message, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all[e.Account+"/"+e.ID]
	return all[max(0, len(all)-most):], nil
}

// Forget removes the transcript of a session.
func (t *Transcripts) Forget(_ context.Context, e *session.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, e.Account+"/"+e.ID)
	return nil
}

// Compact keeps the later half of a transcript, and returns how many messages there
// were and how many are left.
func (t *Transcripts) Compact(_ context.Context, e *session.Entry) (before, after int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.all[e.Account+"/"+e.ID]
	t.all[e.Account+"/"+e.ID] = all[len(all)/2:]
	return len(all), len(all) - len(all)/2, nil
}
