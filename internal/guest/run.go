package guest

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/pid1sig"
	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/guest/quota"
)

// Options say how a guest runs.
type Options struct {
	Socket string // path of the socket for hosts
	// Listener is an inherited descriptor that listens on it already; 0: none.
	Listener int
	// TrustUID admits every process of the same user, for a guest without a pid
	// namespace of its own.
	TrustUID bool
	// OwnNetwork gives all processes but the guest a network namespace of their own.
	OwnNetwork bool
	// NoNamespaces refuses all processes but the guest to make and enter namespaces, where
	// the engine's filter does not. OwnNetwork does so too.
	NoNamespaces bool
	// Reattach is how long a process runs on after its wire broke; 0 is the default.
	Reattach time.Duration
	Build    string // version that the guest reports to hosts
	// OpenFiles is the RLIMIT_NOFILE of the processes that the guest starts; the zero
	// value leaves them the guest's own.
	OpenFiles unix.Rlimit
	// Quota is what the sandbox may keep on the host's disk.
	Quota quota.Limits
}

// stopGrace is the time between SIGTERM and SIGKILL when the sandbox stops.
const stopGrace = 3 * time.Second

// Run serves until the guest is stopped by a signal. Call Harden first.
func Run(ctx context.Context, options *Options) error {
	lineage, err := proc.NewLineage()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	admit := checkHostPeer
	if options.TrustUID {
		admit = sameUser
	}
	s, err := newServer(options.Build, lineage)
	if err != nil {
		return err
	}
	s.openFiles, s.reattach = options.OpenFiles, cmp.Or(options.Reattach, reattachTimeout)
	if options.OwnNetwork {
		if err := s.leaveNetwork(); err != nil {
			return err
		}
	} else if options.NoNamespaces {
		s.join.Filter = namespaceFilter(runtime.GOARCH)
	}
	s.quota = newQuotaEnforcer(s, &options.Quota)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	if s.unmasked, err = onStop(func() { s.onSignal(); stop() }); err != nil {
		return err
	}
	go s.reaper.Run(children)
	checks := &socketCheck{occupied: s.walker.Procs.Others, started: s.processStarted}
	err = (&socketListener{path: options.Socket, inherited: options.Listener, admit: admit, serve: s.serve, checks: checks}).serveUntil(ctx)
	s.terminateAll()
	return err
}

// onStop calls stop on SIGTERM. If the guest is process 1 the signal must come from
// outside the pid namespace, as every process inside may send one. It returns the
// signals whose handlers a new process must reset; nil means all.
func onStop(stop func()) ([]unix.Signal, error) {
	if !isPID1() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.SIGTERM, unix.SIGINT)
		go func() { <-asked; stop() }()
		return nil, nil
	}
	_ = installSyscallFilter() // without it, code inside can only harm its own sandbox
	// The Go runtime interrupts its threads with SIGURG.
	asked, err := pid1sig.Install(unix.SIGTERM, unix.SIGURG, unix.SIGCHLD)
	if err != nil {
		return nil, err
	}
	go func() {
		var count [8]byte
		_, _ = asked.Read(count[:])
		stop()
	}()
	// A new process must not ignore the signals that end processes.
	return pid1sig.Unmasked(unix.SIGTERM, unix.SIGURG, unix.SIGCHLD, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT), nil
}

// terminateAll ends every process of the sandbox that the guest may end.
func (s *server) terminateAll() {
	if !isPID1() {
		s.endAll()
		return
	}
	_ = unix.Kill(-1, unix.SIGTERM)
	_ = unix.Kill(-1, unix.SIGCONT)
	for deadline := time.Now().Add(stopGrace); time.Now().Before(deadline); time.Sleep(proc.PollLast) {
		living := 0
		s.walker.Procs.Each(func(int) { living++ })
		if living == 0 {
			return
		}
	}
	// The kernel kills the rest when process 1 exits.
}

// endAll kills the trees of all execs.
func (s *server) endAll() {
	for _, p := range s.table.after("") {
		p.tree.Kill()
	}
}
