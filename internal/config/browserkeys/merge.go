package browserkeys

import (
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/config/amount"
)

// Level is where a value comes from.
type Level string

// The levels.
const (
	LevelDefault Level = "default"
	LevelGlobal  Level = "global" // agents.defaults
	LevelAgent   Level = "agent"  // the agent's own entry
)

// Merge brings the levels of sandbox.browser together, but for binds and egress. note is
// called for each key with the level that its value is of, and the key's name there.
func Merge(agent, global *File, note func(key, name string, from Level)) (Browser, error) {
	m := merge(note)
	b := Default()
	b.upstream(m, agent, global)
	b.own(m, agent, global)
	return b, errors.Join(
		m.bytes("memory", agent.Memory, global.Memory, &b.Memory),
		m.bytes("shmSize", agent.ShmSize, global.ShmSize, &b.ShmSize),
		b.Downloads.merge(m, orEmpty(agent.Downloads), orEmpty(global.Downloads)),
	)
}

// upstream merges the keys that OpenClaw has.
func (b *Browser) upstream(m merge, agent, global *File) {
	pick(m, "enabled", agent.Enabled, global.Enabled, &b.Enabled)
	pick(m, "image", agent.Image, global.Image, &b.Image)
	pick(m, "containerPrefix", agent.ContainerPrefix, global.ContainerPrefix, &b.ContainerPrefix)
	pick(m, "cdpPort", agent.CDPPort, global.CDPPort, &b.CDPPort)
	pick(m, "cdpSourceRange", agent.CDPSourceRange, global.CDPSourceRange, &b.CDPSourceRange)
	pick(m, "vncPort", agent.VNCPort, global.VNCPort, &b.VNCPort)
	pick(m, "noVncPort", agent.NoVNCPort, global.NoVNCPort, &b.NoVNCPort)
	pick(m, "headless", agent.Headless, global.Headless, &b.Headless)
	pick(m, "allowHostControl", agent.AllowHostControl, global.AllowHostControl, &b.AllowHostControl)
	pick(m, "autoStart", agent.AutoStart, global.AutoStart, &b.AutoStart)
	pick(m, "autoStartTimeoutMs", agent.AutoStartTimeoutMs, global.AutoStartTimeoutMs, &b.AutoStartTimeoutMs)
	b.noVNC(m, agent, global)
	b.network(m, agent, global)
}

// own merges the keys that only Atoll has.
func (b *Browser) own(m merge, agent, global *File) {
	pick(m, "engine", agent.Engine, global.Engine, &b.Engine)
	pick(m, "pidsLimit", agent.PidsLimit, global.PidsLimit, &b.PidsLimit)
	pick(m, "tabs", agent.Tabs, global.Tabs, &b.Tabs)
	pick(m, "viewport", agent.Viewport, global.Viewport, &b.Viewport)
	pick(m, "profile", agent.Profile, global.Profile, &b.Profile)
	pick(m, "evaluate", agent.Evaluate, global.Evaluate, &b.Evaluate)
	pick(m, "uploads", agent.Uploads, global.Uploads, &b.Uploads)
	pick(m, "view", agent.View, global.View, &b.View)
	pick(m, "control", agent.Control, global.Control, &b.Control)
	pick(m, "cdp", agent.CDP, global.CDP, &b.CDP)
	pick(m, "idleMinutes", agent.IdleMinutes, global.IdleMinutes, &b.IdleMinutes)
	pick(m, "dangerouslyNoSandbox", agent.NoSandbox, global.NoSandbox, &b.NoSandbox)
	pick(m, "dangerouslyIgnoreCertificates", agent.IgnoreCertificates, global.IgnoreCertificates, &b.IgnoreCertificates)
}

// network merges network; a blank name is the default.
func (b *Browser) network(m merge, agent, global *File) {
	fallback := b.Network
	pick(m, "network", agent.Network, global.Network, &b.Network)
	if b.Network = strings.TrimSpace(b.Network); b.Network == "" {
		b.Network = fallback
		m("network", "network", LevelDefault)
	}
}

// noVNC merges noVncEnabled and its old name, level by level.
func (b *Browser) noVNC(m merge, agent, global *File) {
	const key = "noVncEnabled"
	for _, level := range []struct {
		file *File
		from Level
	}{{agent, LevelAgent}, {global, LevelGlobal}} {
		switch {
		case level.file.NoVNCEnabled != nil:
			b.NoVNCEnabled = *level.file.NoVNCEnabled
			m(key, key, level.from)
			return
		case level.file.EnableNoVNC != nil:
			b.NoVNCEnabled = *level.file.EnableNoVNC
			m(key, "enableNoVnc", level.from)
			return
		}
	}
	m(key, key, LevelDefault)
}

func (d *Downloads) merge(m merge, agent, global *DownloadsFile) error {
	pick(m, "downloads.maxFiles", agent.MaxFiles, global.MaxFiles, &d.MaxFiles)
	pick(m, "downloads.into", agent.Into, global.Into, &d.Into)
	return m.bytes("downloads.maxBytes", agent.MaxBytes, global.MaxBytes, &d.MaxBytes)
}

// merge notes the level of a value.
type merge func(key, name string, from Level)

// pick sets to, which has the default, to the agent's value, else the global one.
func pick[T any](m merge, key string, agent, global, to *T) {
	switch {
	case agent != nil:
		*to = *agent
		m(key, key, LevelAgent)
	case global != nil:
		*to = *global
		m(key, key, LevelGlobal)
	default:
		m(key, key, LevelDefault)
	}
}

// bytes is pick for sizes.
func (m merge) bytes(key string, agent, global *amount.Size, to *int64) error {
	var written amount.Size
	pick(m, key, agent, global, &written)
	if written == (amount.Size{}) {
		return nil
	}
	size, err := written.Bytes()
	if err != nil {
		return fmt.Errorf("sandbox.browser.%s: %w", key, err)
	}
	*to = size
	return nil
}

func orEmpty[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}
