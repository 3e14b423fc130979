package e2b

import (
	"math"
	"net/http"
	"runtime"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/e2b/envd"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// sandboxInfo is a sandbox as clients see it.
type sandboxInfo struct {
	SandboxID    string            `json:"sandboxID"`
	TemplateID   string            `json:"templateID"`
	Alias        string            `json:"alias"`
	ClientID     string            `json:"clientID"`
	Metadata     map[string]string `json:"metadata"`
	StartedAt    time.Time         `json:"startedAt"`
	EndAt        time.Time         `json:"endAt"`
	State        string            `json:"state"`
	CPUCount     int               `json:"cpuCount"`
	MemoryMB     int64             `json:"memoryMB"`
	DiskSizeMB   int64             `json:"diskSizeMB"`
	EnvdVersion  string            `json:"envdVersion"`
	VolumeMounts []struct{}        `json:"volumeMounts"`
	Domain       string            `json:"domain"`
}

// latest is the end of a sandbox that has no deadline: the last that every client reads.
var latest = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

func (c *call) describe(r *sandboxes.Record, state sandbox.State) (*sandboxInfo, error) {
	limits, err := c.Made.Limits(r)
	if err != nil {
		return nil, err
	}
	template, end := c.templateOf(r), r.Deadline
	if end.After(latest) {
		end = latest
	}
	return &sandboxInfo{
		SandboxID: r.ID, TemplateID: template, Alias: template, ClientID: "atoll", Metadata: r.Metadata, StartedAt: r.Created, EndAt: end, State: stateOf(state),
		CPUCount: processors(limits.CPUs), MemoryMB: limits.Memory >> 20, DiskSizeMB: limits.Workspace.Size >> 20, EnvdVersion: envd.Version, VolumeMounts: []struct{}{}, Domain: domainOf(c.r.Host),
	}, nil
}

// processors returns how many processors a limit is, without one those of the machine.
func processors(limit float64) int {
	if limit <= 0 {
		return runtime.NumCPU()
	}
	return int(math.Ceil(limit))
}

func (c *call) get() error {
	r, err := c.sandbox()
	if err != nil {
		return err
	}
	state, err := c.Made.State(c.ctx(), r)
	if err != nil {
		return err
	}
	d, err := c.describe(r, state)
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, d)
}

func (c *call) kill() error {
	r, err := c.sandbox()
	if err != nil {
		return err
	}
	if err := c.Made.Remove(c.ctx(), r); err != nil {
		return err
	}
	return c.done()
}

// setTimeout moves the deadline of a sandbox to so many seconds from now.
func (c *call) setTimeout() error {
	var q struct {
		Timeout int64 `json:"timeout"`
	}
	return c.extend(&q, func(r *sandboxes.Record) error {
		_, err := c.Made.Extend(c.ctx(), r, q.Timeout)
		return err
	})
}

// refresh makes the deadline of a sandbox at least so many seconds from now.
func (c *call) refresh() error {
	var q struct {
		Duration int64 `json:"duration"`
	}
	return c.extend(&q, func(r *sandboxes.Record) error {
		_, err := c.Made.ExtendTo(c.ctx(), r, q.Duration)
		return err
	})
}

// target reads the body of a request and returns the sandbox of its path with its state.
func (c *call) target(body any) (r *sandboxes.Record, state sandbox.State, err error) {
	if err := c.read(body); err != nil {
		return nil, "", err
	}
	if r, err = c.sandbox(); err != nil {
		return nil, "", err
	}
	state, err = c.Made.State(c.ctx(), r)
	return r, state, err
}

// extend changes the deadline of the sandbox of the path, which must run.
func (c *call) extend(body any, change func(*sandboxes.Record) error) error {
	r, state, err := c.target(body)
	if err != nil {
		return err
	}
	if state != sandbox.StateRunning {
		return &fault{http.StatusConflict, "the sandbox is paused: connect resumes it"}
	}
	if err := change(r); err != nil {
		return err
	}
	return c.done()
}

// connect lets a client into a sandbox. One that is paused goes on.
func (c *call) connect() error {
	q := struct {
		Timeout int64 `json:"timeout"`
		Memory  *bool `json:"memory"`
	}{Timeout: int64(sandboxes.DefaultTimeout / time.Second)}
	r, state, err := c.target(&q)
	if err != nil {
		return err
	}
	status := http.StatusOK
	switch {
	case state == sandbox.StateRunning:
		r, err = c.Made.ExtendTo(c.ctx(), r, q.Timeout)
	case q.Memory != nil && !*q.Memory && state == sandbox.StatePaused:
		return badField("memory", "a sandbox that was paused with its memory is resumed with it")
	default:
		status = http.StatusCreated
		r, err = c.resumed(r, q.Timeout)
	}
	if err != nil {
		return err
	}
	return c.answer(status, c.made(r))
}

// pause holds a sandbox with its memory, which stays in the machine's, or with its files
// alone.
func (c *call) pause() error {
	var q struct {
		Memory *bool `json:"memory"`
	}
	r, state, err := c.target(&q)
	if err != nil {
		return err
	}
	if state != sandbox.StateRunning {
		return &fault{http.StatusConflict, "the sandbox is paused already"}
	}
	if err := c.Made.Pause(c.ctx(), r, q.Memory == nil || *q.Memory); err != nil {
		return err
	}
	return c.done()
}

// resume lets a paused sandbox go on; that of one that runs is a conflict.
func (c *call) resume() error {
	q := struct {
		Timeout   int64 `json:"timeout"`
		AutoPause *bool `json:"autoPause"`
	}{Timeout: int64(sandboxes.DefaultTimeout / time.Second)}
	r, state, err := c.target(&q)
	switch {
	case err != nil:
		return err
	case q.AutoPause != nil && *q.AutoPause:
		return badField("autoPause", "is decided when a sandbox is created")
	case state == sandbox.StateRunning:
		return &fault{http.StatusConflict, "the sandbox runs already"}
	}
	if r, err = c.resumed(r, q.Timeout); err != nil {
		return err
	}
	return c.answer(http.StatusCreated, c.made(r))
}

// resumed lets a sandbox go on, with the program of its image.
func (c *call) resumed(r *sandboxes.Record, seconds int64) (*sandboxes.Record, error) {
	r, err := c.Made.Resume(c.ctx(), r, seconds)
	if err != nil {
		return nil, err
	}
	return r, c.Made.StartProgram(c.ctx(), r)
}
