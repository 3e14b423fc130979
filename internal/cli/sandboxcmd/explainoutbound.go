package sandboxcmd

import (
	"cmp"

	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// explainedOutbound says how this host reaches models, web pages and the relay's
// server. Sandboxes have no part in it.
type explainedOutbound struct {
	Proxies string `json:"proxies"` // of the environment, without passwords
	CAFile  string `json:"caFile"`  // certificates that are trusted beside the system's
	Error   string `json:"error"`   // why nothing outside can be reached
}

func explainOutbound(s *provide.Settings) explainedOutbound {
	host, err := s.Outbound()
	if err != nil {
		return explainedOutbound{Error: err.Error()}
	}
	return explainedOutbound{Proxies: host.Proxies().String(), CAFile: host.CAFile()}
}

func certificatesText(file string) string {
	if file == "" {
		return "the system's"
	}
	return "the system's, and those of " + file
}

// outbound says how the host reaches servers outside, for what it does itself.
func (pg *page) outbound() {
	x := pg.x.Outbound
	pg.title("Outbound")
	if x.Error != "" {
		pg.painted("unavailable", x.Error, "", pg.style.Alarm)
		return
	}
	pg.fact("proxies", cmp.Or(x.Proxies, "none: models, web pages and the relay's server are reached directly"), "")
	pg.fact("certificates", certificatesText(x.CAFile), "")
}
