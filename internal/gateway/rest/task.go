package rest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/relay/branch"
)

// Task is a run request after validation.
type Task struct {
	ID       string
	GraphID  string
	Agent    string
	Account  string
	Trace    string // id of the trace that the request names; "" if it names none
	Parent   string // its header traceparent
	Model    string
	Messages []chat.Message
	Budget   grant.Budget
	Timeout  time.Duration
	Memory   int64
	Branch   string
}

// Limits of a task beyond those of the body.
const (
	maxName    = 200
	maxTimeout = 7 * 24 * 3600
	maxDollars = 1e6
	maxKey     = 255
)

// plainID matches a name that can be part of a path.
var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// task returns the task of a request, after checking the caller's rights.
func (c *call) task(b *api.RunRequest) (*Task, error) {
	if errs := checkRun(b); len(errs) > 0 {
		return nil, invalid(errs...)
	}
	account, err := c.account(b.Account)
	if err != nil {
		return nil, err
	}
	id, err := c.runID(b.ID, account)
	if err != nil {
		return nil, err
	}
	wish := branch.Request{Branch: b.BranchName, WorkItem: b.WorkItemID, StateKey: b.StateKey, Mode: b.BranchMode, Run: id}
	key, err := wish.Key()
	if err != nil {
		return nil, invalid(api.FieldError{Pointer: "/branchName", Detail: err.Error()})
	}
	return &Task{
		ID: id, GraphID: cmp.Or(b.GraphID, defaultGraph), Agent: b.Agent, Account: account, Model: b.Model, Messages: messages(b),
		Budget:  grant.Budget{MicroUSD: int64(math.Ceil(b.Budget.USD * 1e6)), Tokens: b.Budget.Tokens},
		Timeout: time.Duration(b.Timeout) * time.Second, Memory: b.Memory, Branch: string(key),
		Trace: traceparent.TraceID(c.r.Header.Get(traceparent.Header)), Parent: c.r.Header.Get(traceparent.Header),
	}, nil
}

// runID returns the id that the caller chose, that of its idempotency key, or a new
// one.
func (c *call) runID(asked, account string) (string, error) {
	key := c.r.Header.Get(IdempotencyKey)
	switch {
	case len(key) > maxKey:
		return "", invalid(api.FieldError{Pointer: IdempotencyKey, Detail: fmt.Sprintf("must have at most %d bytes", maxKey)})
	case asked != "" && key != "":
		return "", invalid(api.FieldError{Pointer: "/id", Detail: "excludes the header " + IdempotencyKey})
	case asked != "" && c.caller.Account != "":
		return "", refused("id_not_yours", "a token that is bound to an account cannot choose the id of a run", "give an "+IdempotencyKey+" instead")
	case asked != "":
		return asked, nil
	case key != "":
		return idempotentRunID(account, key), nil
	}
	return "run-" + strings.ToLower(rand.Text()), nil
}

// checkRun returns every fault of a request that can be found without other state.
func checkRun(b *api.RunRequest) (errs []api.FieldError) {
	add := func(wrong bool, pointer, detail string) {
		if wrong {
			errs = append(errs, api.FieldError{Pointer: pointer, Detail: detail})
		}
	}
	for _, name := range []struct{ pointer, text string }{
		{"/graphId", b.GraphID}, {"/agent", b.Agent}, {"/account", b.Account}, {"/model", b.Model}, {"/stateKey", b.StateKey}, {"/workItemId", b.WorkItemID}, {"/branchName", b.BranchName},
	} {
		add(len(name.text) > maxName || strings.ContainsAny(name.text, "\r\n\x00"), name.pointer, fmt.Sprintf("must be one line of at most %d bytes", maxName))
	}
	add(b.ID != "" && !plainID.MatchString(b.ID), "/id", "must be letters, digits, dots, dashes and underscores, at most 100")
	add(b.Message == "" && len(b.Messages) == 0, "/message", "the task is missing")
	add(b.Message != "" && len(b.Messages) > 0, "/message", "excludes messages")
	for i, m := range b.Messages {
		add(m.Role != string(chat.User) && m.Role != string(chat.Assistant), fmt.Sprintf("/messages/%d/role", i), "must be user or assistant")
	}
	add(b.Timeout < 0 || b.Timeout > maxTimeout, "/timeoutSeconds", fmt.Sprintf("must be between 0 and %d", maxTimeout))
	add(b.Memory < 0, "/memory", "must not be negative")
	add(!(b.Budget.USD >= 0 && b.Budget.USD <= maxDollars), "/budget/usd", "must be between 0 and a million")
	add(b.Budget.Tokens < 0, "/budget/tokens", "must not be negative")
	return errs
}

func messages(b *api.RunRequest) []chat.Message {
	if b.Message != "" {
		return []chat.Message{{Role: chat.User, Text: b.Message}}
	}
	list := make([]chat.Message, 0, len(b.Messages))
	for _, m := range b.Messages {
		list = append(list, chat.Message{Role: chat.Role(m.Role), Text: m.Content})
	}
	return list
}
