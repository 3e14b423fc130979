package ws

import (
	"strings"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// agents lists the agents.
func (c *call) agents() (any, error) {
	list := []fields{}
	for _, a := range c.server.agentsOf(c.ctx) {
		f := fields{"id": a.ID}
		if a.Name != "" && a.Name != a.ID {
			f["name"] = a.Name
		}
		if c.version >= protocol.V4 && a.Model != "" {
			f["model"] = fields{"primary": a.Model}
		}
		list = append(list, f)
	}
	f := fields{"defaultId": c.server.defaultAgent(c.ctx), "mainKey": "main", "scope": "per-sender", "agents": list}
	if c.version >= protocol.V4 {
		f["ownership"], f["selectionRequired"] = "sole", false
	}
	return f, nil
}

func modelsShape() shape {
	return join(optional(word, true, "agentId", "sessionKey", "authProfileId", "provider"), optional(text, true, "view"),
		optional(flag, true, "includeDetails", "includeProviderCapabilities", "includeDefaultModels", "preparedOnly", "refresh"))
}

// models lists the models that sessions can be set to.
func (c *call) models() (any, error) {
	var p struct {
		Provider string `json:"provider"`
	}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	models, err := c.server.Catalogue.Models(c.ctx)
	if err != nil {
		return nil, err
	}
	provider, name, _ := c.server.defaultModel(c.ctx)
	list := []fields{}
	for _, m := range models {
		if p.Provider != "" && m.Provider != p.Provider {
			continue
		}
		f := fields{"id": m.ID, "name": m.Name, "provider": m.Provider, "reasoning": m.Reasoning}
		if m.ContextWindow > 0 {
			f["contextWindow"] = m.ContextWindow
		}
		if c.version >= protocol.V4 {
			f["available"] = true
			if m.Provider == provider && m.ID == name {
				f["tags"] = []string{"default"}
			}
		}
		list = append(list, f)
	}
	return fields{"models": list}, nil
}

// identity returns the name under which an agent appears in a chat.
func (c *call) identity() (any, error) {
	var p struct {
		Agent string `json:"agentId"`
	}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	if err := c.checkAgent(p.Agent); err != nil {
		return nil, err
	}
	for _, a := range c.server.agentsOf(c.ctx) {
		if p.Agent == "" || strings.EqualFold(a.ID, p.Agent) {
			name := a.Name
			if name == "" {
				name = a.ID
			}
			return fields{"agentId": a.ID, "name": name, "avatar": strings.ToUpper(name[:1])}, nil
		}
	}
	return nil, invalid("unknown agent id")
}

func commandsShape() shape {
	return join(optional(word, true, "agentId", "provider"), optional(text, true, "scope", "surface"), optional(flag, true, "includeArgs"))
}

// commands lists no commands: a message that begins with a slash goes to the agent.
func (c *call) commands() (any, error) { return fields{"commands": []any{}}, nil }

// approvals and questions are empty: agents of this gateway ask none.
func (c *call) approvals() (any, error) { return []any{}, nil }
func (c *call) questions() (any, error) { return fields{"questions": []any{}}, nil }
