package mcpservers

import (
	"bytes"
	"slices"
)

// AddTo returns the content of a settings file with MCP servers: a member of its JSON
// object, or tables after its text.
func AddTo(content, servers []byte, isJSON bool) []byte {
	switch before := bytes.TrimSpace(content); {
	case !isJSON || len(servers) == 0:
		return slices.Concat(content, servers)
	case string(before) == "{}":
		return servers
	default:
		return slices.Concat(bytes.TrimSuffix(before, []byte("}")), []byte(","), bytes.TrimPrefix(servers, []byte("{")))
	}
}
