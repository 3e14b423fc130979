package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The kinds of failure of templates.
var (
	ErrNoTemplate     = errhint.With(errors.New("there is no such template"), "make one of a sandbox with `atoll snapshot SANDBOX TEMPLATE`")
	ErrTemplateExists = errors.New("there is a template of that name")
)

// templateForm matches the name of a template.
var templateForm = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,63}$`)

const templateRule = "must be up to 64 of a-z, 0-9, dot, dash and underscore"

// Fork makes a sandbox with the files of another, as they are at one moment. The other
// is held up meanwhile, if it runs.
func (s *Service) Fork(ctx context.Context, source *Record, q *Request) (*Record, error) {
	if source.Phase != Ready {
		return nil, ErrEnding
	}
	request := *source.Details.Request
	request.Metadata, request.TimeoutSeconds, request.Workspace = q.Metadata, q.TimeoutSeconds, nil
	if err := check(&request); err != nil {
		return nil, err
	}
	return s.create(ctx, &Request{CreateSandbox: &request, Account: source.Account, MostSandboxes: q.MostSandboxes, Bound: source.Details.Bound || q.Bound, E2B: source.Details.E2B}, source)
}

// makeFrom makes the sandbox of a record with the files of another.
func (s *Service) makeFrom(ctx context.Context, source *Record, who provide.Subject, r *Record) error {
	if err := s.copyFiles(ctx, source, who, r); err != nil {
		return err
	}
	if err := s.records.finish(ctx, r, Ready); err != nil {
		return err
	}
	r.Phase = Ready
	return nil
}

// copyFiles makes a sandbox with the files of another, which is paused meanwhile.
func (s *Service) copyFiles(ctx context.Context, source *Record, who provide.Subject, r *Record) error {
	resume, err := s.pause(ctx, source)
	if err != nil {
		return err
	}
	p, err := s.In.ForkSubject(ctx, s.subjectOf(source), who)
	if err := errors.Join(err, resume()); err != nil {
		return err
	}
	r.Details.SearchPath, r.Details.Roots = p.SearchPath, rootsOf(p)
	return nil
}

// subjectOf returns the session that a sandbox was made for, with what it was made
// from.
func (s *Service) subjectOf(r *Record) provide.Subject {
	return s.subject(&Request{CreateSandbox: r.Details.Request, Account: r.Account, E2B: r.Details.E2B}, r.ID)
}

// pause holds a sandbox that runs, until resume is called.
func (s *Service) pause(ctx context.Context, r *Record) (resume func() error, err error) {
	state, err := s.In.Manager.State(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	if state != sandbox.StateRunning {
		return func() error { return nil }, nil
	}
	if err := s.In.Manager.Pause(ctx, r.Name, true); err != nil {
		return nil, err
	}
	return func() error { return s.In.Manager.Pause(context.WithoutCancel(ctx), r.Name, false) }, nil
}

// Snapshot keeps the files of a sandbox as a template.
func (s *Service) Snapshot(ctx context.Context, source *Record, name string, mostSandboxes int) (*Record, error) {
	switch _, err := s.records.template(ctx, source.Account, name); {
	case source.Phase != Ready:
		return nil, ErrEnding
	case !templateForm.MatchString(name):
		return nil, &InvalidError{"/name", templateRule}
	case err == nil:
		return nil, ErrTemplateExists
	case !errors.Is(err, ErrNoTemplate):
		return nil, err
	}
	request := *source.Details.Request
	request.Workspace = nil
	q := &Request{CreateSandbox: &request, Account: source.Account, MostSandboxes: mostSandboxes, Bound: source.Details.Bound, E2B: source.Details.E2B}
	return s.keepSnapshot(ctx, source, q, name)
}

// keepSnapshot copies a sandbox and leaves the copy stopped.
func (s *Service) keepSnapshot(ctx context.Context, source *Record, q *Request, name string) (*Record, error) {
	id := newID()
	who := s.subject(q, id)
	p, err := s.In.Plan(who)
	if err != nil {
		return nil, err
	}
	r := s.newRecord(q, id, p)
	r.Template, r.Deadline, r.Metadata = name, never, map[string]string{}
	if err := s.records.insert(ctx, r); err != nil {
		return nil, err
	}
	if err = s.copyFiles(ctx, source, who, r); err == nil {
		err = s.In.Manager.ForceStop(ctx, r.Name)
	}
	if err == nil {
		err = s.records.finish(ctx, r, Snapshot)
	}
	if err != nil {
		if _, taken := s.records.template(ctx, r.Account, name); taken == nil {
			err = ErrTemplateExists // made meanwhile
		}
		return nil, errors.Join(err, s.undo(ctx, r))
	}
	r.Phase = Snapshot
	return r, nil
}

// fromTemplate returns the template that a request names, nil if none, and completes
// the request with what the template was made from.
func (s *Service) fromTemplate(ctx context.Context, q *Request) (*Record, error) {
	if q.Template == "" {
		return nil, nil
	}
	r, err := s.records.template(ctx, q.Account, q.Template)
	if err != nil {
		return nil, err
	}
	request, from := *q.CreateSandbox, r.Details.Request
	request.Image, request.Workdir = from.Image, from.Workdir
	if request.Limits == nil {
		request.Limits = from.Limits
	}
	if request.Egress == nil {
		request.Egress = from.Egress
	}
	env := maps.Clone(from.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, request.Env)
	request.Env = env
	q.CreateSandbox = &request
	return r, nil
}

// Template returns a template of an account.
func (s *Service) Template(ctx context.Context, account, name string) (*Record, error) {
	return s.records.template(ctx, account, name)
}

// Templates returns the templates of an account, "" for all.
func (s *Service) Templates(ctx context.Context, account string) ([]*Record, error) {
	return s.records.query(ctx, "WHERE phase = 'snapshot' AND (?1 = '' OR account = ?1) ORDER BY template, account", account)
}

// template returns the template of a name in an account.
func (s records) template(ctx context.Context, account, name string) (*Record, error) {
	list, err := s.query(ctx, "WHERE phase = 'snapshot' AND account = ? AND template = ?", account, name)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		return nil, fmt.Errorf("%q: %w", name, ErrNoTemplate)
	}
	return list[0], nil
}

// TemplateOf describes a template.
func TemplateOf(r *Record) api.Template {
	return api.Template{Name: r.Template, Account: r.Account, Created: r.Created, Image: r.Details.Request.Image}
}
