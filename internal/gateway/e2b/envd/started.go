package envd

import (
	"slices"
	"sync"

	"github.com/atoll-run/atoll/api"
)

const (
	// maxStarted bounds the processes about which something is kept, and maxConfig the
	// bytes of one's command that are.
	maxStarted = 4096
	maxConfig  = 4096
)

// startedProcess is what clients have said about a process. The guest knows the rest.
type startedProcess struct {
	sandbox, id string
	tag         string
	config      processConfig
}

// startedProcesses are the last processes that clients have started, the oldest first.
type startedProcesses struct {
	mu  sync.Mutex
	all []*startedProcess
}

// add keeps the command and the tag of a process; its environment is not.
func (s *startedProcesses) add(sandbox, id, tag string, config *processConfig) {
	kept := &startedProcess{sandbox: sandbox, id: id, tag: tag, config: processConfig{Cmd: config.Cmd, Args: []string{}, Envs: map[string]string{}, Cwd: config.Cwd}}
	size := len(tag) + len(config.Cmd) + len(config.Cwd)
	for _, argument := range config.Args {
		if size += len(argument); size > maxConfig {
			break
		}
		kept.config.Args = append(kept.config.Args, argument)
	}
	if size > maxConfig && len(tag)+len(config.Cmd)+len(config.Cwd) > maxConfig {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all = append(s.all, kept); len(s.all) > maxStarted {
		s.all = slices.Delete(s.all, 0, len(s.all)-maxStarted)
	}
}

// tagged returns the id of the process of a tag in a sandbox, the last one; "" if there is
// none.
func (s *startedProcesses) tagged(sandbox, tag string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range slices.Backward(s.all) {
		if p.sandbox == sandbox && p.tag == tag && tag != "" {
			return p.id
		}
	}
	return ""
}

// get returns what is known about a process: what a client has said, else its command line
// as the guest shows it.
func (s *startedProcesses) get(sandbox string, p *api.Process) *startedProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range slices.Backward(s.all) {
		if known.sandbox == sandbox && known.id == p.ID {
			return known
		}
	}
	return &startedProcess{config: processConfig{Cmd: p.Command, Args: []string{}, Envs: map[string]string{}}}
}
