package guest

import (
	"context"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/pid1sig"
	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/guest/quota"
)

// Options say how a guest runs.
type Options struct {
	Socket string // where hosts knock
	// Listener is a descriptor that listens there already, 0 if none does:
	// whoever started the guest let hosts knock before it runs.
	Listener int
	// TrustUID admits every process of the same user, for a guest that is not
	// alone in a pid namespace.
	TrustUID bool
	Build    string // what the guest calls itself to hosts
	// OpenFiles is the RLIMIT_NOFILE of the processes that the guest starts; the zero
	// value leaves them the guest's own.
	OpenFiles unix.Rlimit
	// Quota is what the sandbox may keep on the host's disk.
	Quota quota.Limits
}

// stopGrace is how long the sandbox's processes have between TERM and the end.
const stopGrace = 3 * time.Second

// Run serves until somebody outside asks the guest to end. Harden comes first.
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
	s.openFiles = options.OpenFiles
	s.quota = newQuotaEnforcer(s, &options.Quota)
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	if s.unmasked, err = onStop(stop); err != nil {
		return err
	}
	go s.reaper.Run(children)
	checks := &socketCheck{occupied: s.walker.Procs.Others, started: s.started}
	err = (&socketListener{path: options.Socket, inherited: options.Listener, admit: admit, serve: s.serve, checks: checks}).serveUntil(ctx)
	s.terminateAll()
	return err
}

// onStop calls stop when the guest is asked to end: by anybody who may signal
// it, or, if it is process 1 and so everybody may, only from outside. It returns
// the signals that a new process must clear, or nil if those are all.
func onStop(stop func()) ([]unix.Signal, error) {
	if !alone() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, unix.SIGTERM, unix.SIGINT)
		go func() { <-asked; stop() }()
		return nil, nil
	}
	_ = installSyscallFilter() // a profile that forbids it endangers nobody but the sandbox
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
	// Those by which processes are asked to end must not be swallowed on the way.
	return pid1sig.Unmasked(unix.SIGTERM, unix.SIGURG, unix.SIGCHLD, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT), nil
}

// terminateAll ends every process of the sandbox that the guest may end.
func (s *server) terminateAll() {
	if !alone() {
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
	// The kernel kills whatever is left with its process 1.
}

// endAll kills the trees of all execs.
func (s *server) endAll() {
	for _, p := range s.table.after("") {
		p.tree.Kill()
	}
}
