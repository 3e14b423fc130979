package rest

import (
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/relay/branch"
)

// maxTurns bounds the model answers that a message may ask for.
const maxTurns = 100_000

// sessionTask returns the task of a request, after checking the caller's rights.
func (c *call) sessionTask(b *api.SendRequest) (*session.Task, error) {
	account, err := c.account(b.Account)
	if err != nil {
		return nil, err
	}
	if errs := checkMessage(b); len(errs) > 0 {
		return nil, invalid(errs...)
	}
	if err := c.checkPrivileges(b); err != nil {
		return nil, err
	}
	id, err := c.taskID(account)
	if err != nil {
		return nil, err
	}
	wish := branch.Request{Branch: b.BranchName, Run: id}
	key, err := wish.Key()
	if err != nil {
		return nil, invalid(api.FieldError{Pointer: "/branchName", Detail: err.Error()})
	}
	return &session.Task{
		ID: id, Key: c.path("key"), Account: account, Message: b.Message, Uploads: uploads(b.Attachments), System: b.System, Headers: b.Headers, Timeout: time.Duration(b.Timeout) * time.Second,
		Terms: session.Terms{
			Model: b.Model, Transcript: b.SessionID, Run: b.RunID, Branch: string(key), HostTools: b.HostTools, Thinking: b.Thinking,
			Turns: b.MaxTurns, Tokens: b.Budget.Tokens, MicroUSD: int64(math.Ceil(b.Budget.USD * 1e6)),
		},
		Quota: c.quota(), Trace: traceparent.TraceID(c.r.Header.Get(traceparent.Header)),
	}, nil
}

func uploads(all []api.Attachment) (list []attach.Upload) {
	for _, a := range all {
		list = append(list, attach.Upload{Name: a.Name, Content: a.Content})
	}
	return list
}

// taskID returns the id made of the caller's idempotency key, or a new one.
func (c *call) taskID(account string) (string, error) {
	key := c.r.Header.Get(IdempotencyKey)
	switch {
	case len(key) > maxKey:
		return "", invalid(api.FieldError{Pointer: IdempotencyKey, Detail: fmt.Sprintf("must have at most %d bytes", maxKey)})
	case key != "":
		return "task" + strings.TrimPrefix(idempotentRunID(account, key), "run"), nil
	}
	return "task-" + strings.ToLower(rand.Text()), nil
}

// checkPrivileges refuses names of transcripts and receipts, and tools on the host,
// to callers bound to an account.
func (c *call) checkPrivileges(b *api.SendRequest) error {
	if b.SessionID == "" && b.RunID == "" && !b.HostTools {
		return nil
	}
	if err := c.requireUnbound(); err != nil {
		return err
	}
	if !c.caller.May(access.Admin) {
		return fmt.Errorf("%w: sessionId, runId and hostTools need the scope %s", access.ErrScope, access.Admin)
	}
	return nil
}

// checkMessage returns every fault of a request that can be found without other
// state.
func checkMessage(b *api.SendRequest) (errs []api.FieldError) {
	add := func(wrong bool, pointer, detail string) {
		if wrong {
			errs = append(errs, api.FieldError{Pointer: pointer, Detail: detail})
		}
	}
	add(strings.TrimSpace(b.Message) == "" && len(b.Attachments) == 0, "/message", "the message is missing")
	add(b.Timeout < 0 || b.Timeout > maxTimeout, "/timeoutSeconds", fmt.Sprintf("must be between 0 and %d", maxTimeout))
	for _, name := range []struct{ pointer, text string }{{"/model", b.Model}, {"/branchName", b.BranchName}} {
		add(len(name.text) > maxName || strings.ContainsAny(name.text, "\r\n\x00"), name.pointer, fmt.Sprintf("must be one line of at most %d bytes", maxName))
	}
	for _, id := range []struct{ pointer, text string }{{"/runId", b.RunID}, {"/sessionId", b.SessionID}} {
		add(len(id.text) > maxName || strings.ContainsAny(id.text, "\r\n\x00"), id.pointer, fmt.Sprintf("must be one line of at most %d bytes", maxName))
	}
	add(b.MaxTurns < 0 || b.MaxTurns > maxTurns, "/maxTurns", fmt.Sprintf("must be between 0 and %d", maxTurns))
	add(!(b.Budget.USD >= 0 && b.Budget.USD <= maxDollars), "/budget/usd", "must be between 0 and a million")
	add(b.Budget.Tokens < 0, "/budget/tokens", "must not be negative")
	return errs
}
