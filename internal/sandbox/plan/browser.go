package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// BrowserHome is a directory in memory that ends with the sandbox.
const BrowserHome = "/tmp"

// imageKey is the key of an agent's image.
const imageKey = "sandbox.docker.image"

// Browser returns the plan of the browser beside the sandbox of p: a sandbox of its own
// with no workspace, no variable of the agent and no network. What policy refuses of it is
// in its Findings.
func (p *Plan) Browser() (*Plan, error) {
	browser := p.Agent.Sandbox.Browser
	b := *p
	b.ScopeKey = p.browserScope()
	name, err := policy.ContainerName(browser.ContainerPrefix, b.ScopeKey)
	if err != nil {
		return nil, err
	}
	b.Agent = browserAgent(p.Agent)
	b.canonical, b.Net, b.Env, b.repository, b.Home = nil, nil, policy.Env{}, nil, BrowserHome
	if b.Mounts, err = b.browserMounts(p.Findings); err != nil {
		return nil, err
	}
	b.Router = policy.NewRouter(b.Agent.Sandbox)
	b.Spec = &sandbox.Spec{
		Name: name, Kind: sandbox.KindBrowser, ScopeKey: b.ScopeKey, AgentID: p.browserAgentID(b.ScopeKey), Account: p.Spec.Account,
		Image: browser.Image, Workdir: BrowserHome, User: browserUser(p.Spec.User),
		ReadOnlyRoot: true, Tmpfs: p.Spec.Tmpfs, ShmSize: browser.ShmSize, Network: "none", CapDrop: []string{"ALL"},
		AppArmorProfile: p.Spec.AppArmorProfile, NoBrowserSandbox: browser.NoSandbox,
		Mounts: mountsOf(b.Mounts, b.state), MountsHash: policy.MountsHash(b.Mounts),
		Limits: sandbox.Limits{Defaults: sandbox.Defaults{Memory: browser.Memory, Pids: browser.PidsLimit}},
	}
	if err := b.keepProfile(); err != nil {
		return nil, err
	}
	b.Spec.ConfigHash, err = specHash(b.Spec)
	return &b, err
}

// browserAgent returns an agent whose image is the browser's and that has one sandbox
// without a network.
func browserAgent(from *config.Agent) *config.Agent {
	agent := *from
	agent.Origins = maps.Clone(from.Origins)
	agent.Origins[imageKey] = from.Origins["sandbox.browser.image"]
	agent.Sandbox.Docker.Image = from.Sandbox.Browser.Image
	agent.Sandbox.Docker.Network = "none"
	agent.Sandbox.NetworkAllow, agent.Sandbox.NetworkExecAllow = nil, nil
	return &agent
}

// browserUser returns who the browser runs as: Chromium has no sandbox of its own as
// root.
func browserUser(user string) string {
	if user == "" || user == "0" || strings.HasPrefix(user, "0:") {
		return "1000:1000"
	}
	return user
}

// hashLength is the length of the hashes of configurations.
const hashLength = 40

// specHash returns a hash of all that a spec says.
func specHash(spec *sandbox.Spec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("hash of %s: %w", spec.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])[:hashLength], nil
}
