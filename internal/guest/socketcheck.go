package guest

import (
	"context"
	"time"
)

const (
	// pollAfter is how often the guest checks its socket while a process runs.
	pollAfter = time.Second
	// idlePoll is how often it checks while none runs: only a process outside the
	// sandbox can remove the socket then.
	idlePoll = 5 * time.Minute
)

// socketCheck decides when the guest checks its socket. It polls and uses no inotify: the
// kernel gives each user 128 instances by default, which as many idle sandboxes would
// use up for the user outside.
type socketCheck struct {
	occupied func() bool     // reports whether a process other than the guest runs
	started  <-chan struct{} // receives after a process was started
	busy     bool            // a process ran when the last check was due
}

// wait returns when the socket is to be checked, or ctx has ended. After the last process
// has ended there is one more check: it may have removed the socket.
func (l *socketCheck) wait(ctx context.Context) {
	before := l.busy
	l.busy = l.occupied()
	if !l.busy && !before {
		l.waitForProcess(ctx)
	} else {
		pause(ctx, pollAfter)
	}
}

// waitForProcess returns pollAfter after a process was started, or after idlePoll.
func (l *socketCheck) waitForProcess(ctx context.Context) {
	timer := time.NewTimer(idlePoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-l.started:
		l.busy = true // it may have ended already
		pause(ctx, pollAfter)
	}
}

// pause waits for d, or for ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
