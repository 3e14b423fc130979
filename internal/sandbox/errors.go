package sandbox

import "errors"

// The kinds of failure. Runtimes wrap them with the subject first:
// fmt.Errorf("container %q: %w", name, ErrNotFound).
var (
	ErrNotFound    = errors.New("not found")
	ErrExists      = errors.New("already exists")
	ErrNotRunning  = errors.New("not running")
	ErrDenied      = errors.New("denied by policy")
	ErrUnsupported = errors.New("not supported here")
	ErrBusy        = errors.New("in use")
	ErrForeign     = errors.New("owned by another program")
	ErrUnavailable = errors.New("engine not available")
	ErrNoImage     = errors.New("image not found")
	// ErrNotSaved is a sandbox that answers, and whose files cannot be brought home.
	ErrNotSaved = errors.New("its files were not brought home")
)

// ProvisionError is the one error of a sandbox that could not be provided. It
// stops whatever wanted to run in it: nothing falls back to the host.
type ProvisionError struct {
	Name string // the sandbox
	Step string // what was being done: "create", "start", "wire", "setup", …
	Err  error
}

func (e *ProvisionError) Error() string {
	return "sandbox " + e.Name + ": " + e.Step + ": " + e.Err.Error()
}

func (e *ProvisionError) Unwrap() error { return e.Err }
