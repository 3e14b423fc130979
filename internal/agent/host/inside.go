package host

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// inside reports whether this process runs in a sandbox of Atoll's: there the
// guest is process 1, under a path that only a runtime can make.
var inside = sync.OnceValue(func() bool {
	if _, err := os.Stat(provide.GuestProgram); err != nil {
		return false
	}
	line, err := os.ReadFile("/proc/1/cmdline")
	return err == nil && bytes.HasPrefix(line, []byte(provide.GuestProgram+"\x00"))
})

// inPlace has the tools of an agent work where the agent is, if that is a
// sandbox already: none is made within one.
func inPlace(who provide.Subject) provide.Subject {
	if !inside() {
		return who
	}
	adjust := who.Adjust
	who.Adjust = func(agent *config.Agent) {
		if adjust != nil {
			adjust(agent)
		}
		agent.Sandbox.Mode, agent.HostTools = config.ModeOff, true
	}
	return who
}

// stayInPlace has the tools of an agent in a sandbox begin where the agent was
// started, if that is somewhere in its workspace: on a branch, for instance.
func (w *Worker) stayInPlace() {
	if !inside() {
		return
	}
	dir, err := os.Getwd()
	if err != nil {
		return
	}
	if below, err := filepath.Rel(w.Plan.AgentDir(), dir); err == nil && filepath.IsLocal(below) {
		w.Box.Workdir = dir
	}
}

// hostGuestProgram is the guest that tools outside of a sandbox work with. In a
// sandbox it is the one that is there.
func hostGuestProgram(state string) (string, error) {
	if inside() {
		return provide.GuestProgram, nil
	}
	return installHostGuest(state)
}
