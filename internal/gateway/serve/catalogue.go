package serve

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// gatewayCatalogue is what clients of the gateway can choose from.
type gatewayCatalogue struct {
	parts  *Parts
	models *config.LLM
}

// Agents implements ws.Catalogue.
func (c *gatewayCatalogue) Agents(context.Context) (list []ws.Agent, err error) {
	first := c.parts.Config.DefaultAgent()
	for _, id := range c.parts.Config.Agents() {
		agent, err := c.parts.Config.Resolve(id)
		if err != nil {
			return nil, err
		}
		one := ws.Agent{ID: id, Name: id, Model: agent.Model.Primary}
		if id == first {
			list = slices.Insert(list, 0, one)
		} else {
			list = append(list, one)
		}
	}
	return list, nil
}

// Models implements ws.Catalogue: those that have names. What a provider's pattern
// allows beside them only the provider knows.
func (c *gatewayCatalogue) Models(context.Context) (list []ws.Model, err error) {
	written := c.parts.Config.Models().Providers
	for i := range c.models.Providers {
		p := &c.models.Providers[i]
		for _, id := range p.Models {
			if strings.ContainsAny(id, "*?") {
				continue
			}
			list = append(list, describeModel(ws.Model{ID: id, Name: id, Provider: p.Name}, written[p.Name].Models))
		}
	}
	return list, nil
}

// describeModel adds what the configuration says of a model.
func describeModel(m ws.Model, written []config.Model) ws.Model {
	for i := range written {
		w := &written[i]
		if w.ID != m.ID {
			continue
		}
		m.Name, m.Reasoning = cmp.Or(w.Name, m.ID), w.Reasoning != nil && *w.Reasoning
		if w.ContextWindow != nil {
			m.ContextWindow = int64(*w.ContextWindow)
		}
	}
	return m
}
