package wire

import "time"

// OpTerminate says what the guest does when its sandbox is to end, such as a pod that is
// evicted. It uses Request.Terminate and answers an empty Result, with End when all commands
// have ended. It belongs to the feature terminate.
const OpTerminate Op = "terminate"

// Terminate is how a sandbox ends.
type Terminate struct {
	// WaitMs is how long files are served after the signal that ends the sandbox, for a host
	// that fetches them. 0: not at all.
	WaitMs int64 `json:"waitMs,omitempty"`
	// End ends all commands now, and lets none start any more.
	End bool `json:"end,omitempty"`
}

// MaxTerminateWait bounds Terminate.WaitMs.
const MaxTerminateWait = time.Hour

// CodeTerminated is a sandbox that is about to end: no command starts in it.
const CodeTerminated Code = "terminated"

// Valid reports whether the time is possible.
func (t *Terminate) Valid() bool {
	return t.WaitMs >= 0 && t.WaitMs <= MaxTerminateWait.Milliseconds()
}
