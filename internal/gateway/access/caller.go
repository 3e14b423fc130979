// Package access authenticates callers of the gateway and limits what they may do:
// tokens, which are stored as hashes, have a scope and may be bound to a billing
// account; devices and their pairing; rates and quotas.
package access

import (
	"errors"
	"fmt"
	"slices"
)

// Errors of authentication and quotas. None says which part of a credential was
// wrong.
var (
	ErrDenied  = errors.New("the token is missing or not valid")
	ErrScope   = errors.New("the token does not allow this")
	ErrTooMany = errors.New("too many requests")
	ErrQuota   = errors.New("the token's quota is used up")
)

// Scope is what a token allows.
type Scope string

// The scopes. Each includes those after it; Run and Approvals do not include each
// other.
const (
	Admin     Scope = "admin"              // everything, of every account unless the token is bound to one
	Operator  Scope = "operator"           // sandboxes, sessions, relay: change what exists
	Approvals Scope = "operator.approvals" // answer questions, and decide about changes of agents
	Run       Scope = "run"                // give tasks to agents
	Read      Scope = "read"               // look
)

// order lists the scopes, the widest first.
var order = []Scope{Admin, Operator, Approvals, Run, Read}

// Check returns an error for an unknown scope.
func (s Scope) Check() error {
	if slices.Contains(order, s) {
		return nil
	}
	return fmt.Errorf("scope %q is not known: choose admin, operator, operator.approvals, run or read", s)
}

// Caller is the authenticated sender of a request.
type Caller struct {
	Token   string // id of the token, for logs and the audit; never its text
	Name    string
	Scope   Scope
	Account string // billing account that the token is bound to; "" sees all
	Quota   Quota
	// WebLogin is the id of the web login that the request came with; "" is none.
	WebLogin string
}

// Quota bounds what is done with one token; 0 is no limit.
type Quota struct {
	Runs      int   `json:"runs,omitzero"`      // at once
	Sandboxes int   `json:"sandboxes,omitzero"` // alive
	Requests  int   `json:"requests,omitzero"`  // a minute
	MicroUSD  int64 `json:"microUsd,omitzero"`  // a day
}

// May reports whether a scope is allowed.
func (c *Caller) May(s Scope) bool {
	have, want := slices.Index(order, c.Scope), slices.Index(order, s)
	return have >= 0 && want >= have && (c.Scope != Approvals || s != Run)
}

// Sees reports whether the caller may see things of an account.
func (c *Caller) Sees(account string) bool { return c.Account == "" || c.Account == account }
