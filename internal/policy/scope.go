package policy

import (
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

const sharedScopeKey = "shared"

// ScopeKey names those who share a sandbox. A billing account, where there is
// one, is always part of it: accounts never meet, not even in scope "shared".
// A scope that is not known is taken for the narrowest.
func ScopeKey(scope config.Scope, session SessionKey, account string) string {
	key := session.own
	switch scope {
	case config.ScopeShared:
		key = sharedScopeKey
	case config.ScopeAgent:
		key = agentPrefix + session.AgentID
	}
	if account == "" {
		return key
	}
	return accountPrefix + escapeAccount(account) + ":" + key
}

// SharedScopeKey is the scope key of agents that share a sandbox but differ from
// those in the sandbox called "shared"; lead is the first of them.
func SharedScopeKey(lead, account string) string {
	key := sharedScopeKey + ":" + NormalizeAgentID(lead)
	if account == "" {
		return key
	}
	return accountPrefix + escapeAccount(account) + ":" + key
}

// ScopeIsShared tells whether a scope key is of a sandbox that several agents
// share.
func ScopeIsShared(scopeKey string) bool {
	_, key := ScopeAccount(scopeKey)
	return key == sharedScopeKey || strings.HasPrefix(key, sharedScopeKey+":")
}

// ScopeAccount returns the account of a scope key, "" if it has none, and the
// scope key without it.
func ScopeAccount(scopeKey string) (account, rest string) {
	body, ok := strings.CutPrefix(scopeKey, accountPrefix)
	if !ok {
		return "", scopeKey
	}
	account, rest, _ = strings.Cut(body, ":")
	return unescapeAccount.Replace(account), rest
}

// ScopeHasAgent tells whether a scope key belongs to one agent: its own, or
// that of one of its sessions.
func ScopeHasAgent(scopeKey, agentID string) bool {
	_, key := ScopeAccount(scopeKey)
	own := agentPrefix + NormalizeAgentID(agentID)
	return key == own || strings.HasPrefix(key, own+":")
}

// The account's own colons must not be taken for the end of it.
var (
	accountEscaper  = strings.NewReplacer("%", "%25", ":", "%3A")
	unescapeAccount = strings.NewReplacer("%25", "%", "%3A", ":")
)

func escapeAccount(account string) string { return accountEscaper.Replace(account) }
