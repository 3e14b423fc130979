package sandboxcmd

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/browserkeys"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// browser says what the browser beside the sandbox is like, if there is one.
func (pg *page) browser(p *plan.Plan) {
	keys := &p.Agent.Sandbox.Browser
	if !keys.Enabled {
		return
	}
	b, err := p.Browser()
	if err != nil {
		return
	}
	pg.title("Browser")
	pg.fact("container", b.Spec.Name, "sandbox.browser.containerPrefix")
	pg.fact("starts", startText(keys.AutoStart), "sandbox.browser.autoStart")
	pg.fact("cookies", profileText(&p.Agent.Sandbox), "sandbox.browser.profile")
	pg.fact("without use", restText(keys.IdleMinutes), "sandbox.browser.idleMinutes")
	pg.fact("tabs", fmt.Sprintf("at most %d", keys.Tabs), "sandbox.browser.tabs")
	for _, m := range b.Spec.Mounts {
		mode := "read and write"
		if m.ReadOnly {
			mode = "read only"
		}
		pg.fact(console.Printable(m.Target), fmt.Sprintf("%s (%s, %s)", m.Source, m.Kind, mode), "")
	}
	for _, f := range b.Findings[len(p.Findings):] {
		pg.painted("refused", console.Printable(f.Field+": "+f.Message), "", pg.style.Alarm)
	}
	pg.browserPorts()
}

// browserPorts says of ports that were written that nothing listens on them.
func (pg *page) browserPorts() {
	for _, key := range []string{"cdpPort", "vncPort", "noVncPort"} {
		if pg.agent.Origins["sandbox.browser."+key].Source != "default" {
			pg.fact(key, "not used: programs and people connect through the gateway, no port is published", "sandbox.browser."+key)
		}
	}
}

func startText(a browserkeys.AutoStart) string {
	switch a {
	case browserkeys.AutoStartTrue:
		return "with the session, and is waited for at its first use"
	case browserkeys.AutoStartFalse:
		return "when a person starts it"
	}
	return "with its first use"
}

func profileText(box *config.Sandbox) string {
	switch {
	case box.Browser.Profile == browserkeys.ProfileEphemeral:
		return "of the session, end with the browser"
	case box.Browser.Profile == browserkeys.ProfileSession:
		return "kept for the session"
	case box.Scope == config.ScopeShared:
		return "kept for all who share the sandbox"
	}
	return "kept for the agent, for all its sessions"
}

func restText(minutes int) string {
	text := fmt.Sprintf("frozen after %.0f minutes", service.FreezeAfter.Minutes())
	if minutes == 0 {
		return text + ", never ended"
	}
	return fmt.Sprintf("%s, ended after %d minutes", text, minutes)
}
