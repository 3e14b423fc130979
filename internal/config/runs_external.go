package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
)

// External is an agent of runs.external: another service carries its tasks out.
type External struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url"`
	Token       LLMKey `json:"token,omitzero"`
	HasToken    bool   `json:"hasToken,omitzero"`
	Private     bool   `json:"privateNetwork,omitzero"`
	Timeout     int    `json:"timeoutSeconds"`
}

// DefaultExternalTimeout is how long another service has, in seconds.
const DefaultExternalTimeout = 600

func (c *Config) externals(written map[string]externalFile) (list []External, err error) {
	for _, id := range slices.Sorted(maps.Keys(written)) {
		f := written[id]
		x := External{ID: id, Name: id, Timeout: DefaultExternalTimeout, HasToken: f.Token != nil}
		set(&x.Name, f.Name)
		set(&x.Description, f.Description)
		set(&x.URL, f.URL)
		set(&x.Private, f.Private)
		set(&x.Timeout, f.Timeout)
		if x.HasToken {
			if x.Token, err = c.llmKey(f.Token); err != nil {
				return nil, fmt.Errorf("runs.external.%s.token: %w", id, err)
			}
		}
		list = append(list, x)
	}
	return list, nil
}

// checkExternal wants no token sent where others could listen in.
func checkExternal(c *checker, at *path, n *node) {
	address := n.get("url")
	if n.get("token") == nil || address == nil || address.kind != '"' || n.get("privateNetwork").isTrue() {
		return
	}
	if u, err := url.Parse(address.text); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		c.error(finding{at.child("url"), address.offset, "the token would be sent to another host unencrypted", "use https://, or say privateNetwork: true if only trusted machines can listen in"})
	}
}
