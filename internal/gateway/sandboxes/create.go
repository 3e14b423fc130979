package sandboxes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// DefaultTimeout is from the creation of a sandbox to its deadline, if the request
// says nothing.
const DefaultTimeout = 5 * time.Minute

// Request is a sandbox to make.
type Request struct {
	*api.CreateSandbox
	Account       string // whose it is
	MostSandboxes int    // that the account may have; 0 is no limit
	Bound         bool   // by a caller that is bound to the account, and may not go beyond the operator's limits and rules
	E2B           bool   // by a client of E2B: it reaches what e2b.egress says
}

// Create makes a sandbox and starts it. On an error nothing is left.
func (s *Service) Create(ctx context.Context, q *Request) (*Record, error) {
	if err := check(q.CreateSandbox); err != nil {
		return nil, err
	}
	template, err := s.fromTemplate(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.create(ctx, q, template)
}

// create makes a sandbox, with the files of another if there is one.
func (s *Service) create(ctx context.Context, q *Request, source *Record) (*Record, error) {
	id := newID()
	who := s.subject(q, id)
	p, err := s.In.Plan(who)
	if err != nil {
		return nil, err
	}
	if err := checkPlan(p, q.CreateSandbox); err != nil {
		return nil, err
	}
	if err := s.checkAllowed(ctx, q, p); err != nil {
		return nil, err
	}
	r := s.newRecord(q, id, p)
	if err := s.records.insert(ctx, r); err != nil {
		return nil, err
	}
	if source == nil {
		err = s.make(ctx, who, r)
	} else {
		err = s.makeFrom(ctx, source, who, r)
	}
	if err != nil {
		return nil, errors.Join(err, s.undo(ctx, r))
	}
	s.wake()
	return r, nil
}

// idLength is that of a sandbox's id: 100 random bits, and short enough to be part of
// a host name.
const idLength = 20

func newID() string { return strings.ToLower(rand.Text()[:idLength]) }

// subject returns the session that a sandbox belongs to: a new one of agent api.
func (s *Service) subject(q *Request, id string) provide.Subject {
	return provide.Subject{
		SessionKey: "agent:" + config.APIAgent + ":" + id, Account: q.Account, MostSandboxes: q.MostSandboxes, Made: true,
		Adjust: func(agent *config.Agent) {
			if use := useEgress(q.E2B); use != nil {
				_ = use(s.In.Config, agent) // on an error it reaches nothing, and configured returns it
			}
			adjust(s.In.Settings, agent, q.CreateSandbox)
		},
	}
}

// adjust sets what a request asks for. The workspace begins empty.
func adjust(s *provide.Settings, agent *config.Agent, q *api.CreateSandbox) {
	box := &agent.Sandbox
	call := config.Origin{Source: "call"}
	agent.Workspace = filepath.Join(s.Paths.AtollState, "workspace-"+config.APIAgent)
	agent.Origins["workspace"] = config.Origin{Source: "derived"}
	box.Scope, box.WorkspaceAccess = config.ScopeSession, config.AccessNone
	if q.Image != "" {
		box.Docker.Image, agent.Origins["sandbox.docker.image"] = q.Image, call
	}
	if q.Workdir != "" {
		box.Docker.Workdir, agent.Origins["sandbox.docker.workdir"] = q.Workdir, call
	}
	env := map[string]string{}
	maps.Copy(env, box.Docker.Env)
	maps.Copy(env, q.Env)
	box.Docker.Env = env
	if q.Limits != nil {
		adjustLimits(&box.Docker, q.Limits)
	}
	if q.Egress != nil {
		box.Egress = egressOf(&box.Egress, q.Egress.Allow)
	}
}

func adjustLimits(docker *config.Docker, l *api.SandboxLimits) {
	if l.MemoryBytes > 0 {
		docker.Memory = bytesSize(l.MemoryBytes)
	}
	if l.CPUs > 0 {
		docker.CPUs = l.CPUs
	}
	if l.Processes > 0 {
		docker.PidsLimit = l.Processes
	}
	room := map[string]config.Size{}
	maps.Copy(room, docker.WorkspaceLimit)
	if l.WorkspaceBytes > 0 {
		room["size"] = bytesSize(l.WorkspaceBytes)
	}
	if l.WorkspaceFiles > 0 {
		room["files"] = bytesSize(l.WorkspaceFiles)
	}
	docker.WorkspaceLimit = room
}

func bytesSize(n int64) config.Size { return config.Size{Text: strconv.FormatInt(n, 10)} }

// newRecord returns the record of a sandbox that is about to be made.
func (s *Service) newRecord(q *Request, id string, p *plan.Plan) *Record {
	timeout := DefaultTimeout
	if q.TimeoutSeconds > 0 {
		timeout = time.Duration(q.TimeoutSeconds) * time.Second
	}
	r := &Record{
		ID: id, Template: q.Template, Name: p.Spec.Name, Account: q.Account, Phase: Creating, Created: s.Now().UTC(), OnDeadline: OnDeadlineRemove, Metadata: q.Metadata,
		Details: Details{SessionKey: p.Spec.ScopeKey, WorkspaceDir: p.Layout.WorkspaceDir, Workdir: p.Spec.Workdir, Env: p.Env.Passed, AllowSecret: p.Agent.Sandbox.AllowSecretEnv, PortToken: rand.Text(), AccessToken: rand.Text(), Request: q.CreateSandbox, Bound: q.Bound, E2B: q.E2B},
	}
	r.Deadline = r.Created.Add(timeout)
	if q.OnDeadline != "" {
		r.OnDeadline = q.OnDeadline
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	return r
}

// make makes the sandbox of a record.
func (s *Service) make(ctx context.Context, who provide.Subject, r *Record) error {
	ready, err := s.In.Provide(ctx, who, provide.Options{})
	if err != nil {
		return err
	}
	r.Details.SearchPath, r.Details.Roots = ready.Plan.SearchPath, rootsOf(ready.Plan)
	reached, err := s.furnish(ctx, r, ready)
	if err == nil {
		err = s.records.finish(ctx, r, Ready)
	}
	if err != nil {
		(&connection{ready, reached}).Release()
		return err
	}
	r.Phase = Ready
	s.keep(r, ready.Machine, &connection{ready, reached})
	return nil
}

// furnish puts into a new sandbox what its request names, and opens its egress.
func (s *Service) furnish(ctx context.Context, r *Record, ready *provide.ReadySandbox) (*names, error) {
	if w := r.Details.Request.Workspace; w != nil && w.Git != "" {
		if err := s.clone(ctx, r, ready, w); err != nil {
			return nil, err
		}
	}
	return s.openEgress(ctx, r, ready.Handle, ready.Plan)
}

// rootsOf are the directories of a sandbox whose files may be reached: all that its
// own commands reach.
func rootsOf(p *plan.Plan) []Root {
	roots := []Root{{Path: "/", ReadOnly: p.Spec.ReadOnlyRoot}}
	for _, t := range p.Spec.Tmpfs {
		roots = append(roots, Root{Path: t.Target})
	}
	for _, m := range p.Spec.Mounts {
		roots = append(roots, Root{Path: m.Target, ReadOnly: m.ReadOnly})
	}
	return roots
}

// undo removes what was made of a sandbox whose creation failed.
func (s *Service) undo(ctx context.Context, r *Record) error {
	ctx = context.WithoutCancel(ctx)
	if err := s.records.setRemoving(ctx, r.ID); err != nil {
		return err
	}
	if err := s.remove(ctx, r); err != nil {
		s.wake() // it is tried again
		return fmt.Errorf("what was made of it: %w", err)
	}
	return nil
}
