package run

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// gatewayAgent is the one agent in the configuration of a gateway.
const gatewayAgent = "main"

// SessionKey names the session of a run at a gateway. No two runs have the same:
// gateways make no difference between letters of two cases, so names that differ
// only in them get a mark.
func SessionKey(account, run string) string {
	return "agent:" + gatewayAgent + ":" + keyPart(account) + ":" + keyPart(run)
}

// keyPart is a name as a part of a key: as it is, if that is plain.
func keyPart(name string) string {
	if name == "" {
		return "default"
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	if plain == name && len(name) <= maxKeyPart {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return plain[:min(len(plain), maxKeyPart)] + "." + hex.EncodeToString(sum[:8])
}

const maxKeyPart = 100

// billingHeaders say whose the calls of a session are, to a proxy whose callers
// may say so.
func billingHeaders(j *Job, graph string) map[string]string {
	metadata := `{"run_id":` + quote(j.ID) + `,"attempt":"0","graph_id":` + quote(graph) + `}`
	return map[string]string{"x-litellm-end-user-id": j.Account, "x-cogni-run-id": j.ID, "x-litellm-spend-logs-metadata": metadata}
}

// refusesHeaders reports whether a gateway's answer means that it does not know
// the field at all.
func refusesHeaders(e *protocol.Error) bool {
	return e.Code == protocol.CodeInvalidRequest && strings.Contains(e.Message, "outboundHeaders")
}
