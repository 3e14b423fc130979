package sandboxes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/terminal"
)

// ErrGit is a repository that could not be cloned.
var ErrGit = errors.New("the repository could not be cloned")

// The bounds of a clone.
const (
	maxURL       = 2048
	cloneTimeout = 5 * time.Minute
	cloneSaid    = 2 << 10 // of what git says about a failure
)

// refForm matches the name of a branch or a tag.
var refForm = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._/-]{0,199}$`)

// checkWorkspace returns what is wrong with the source of a workspace by itself.
func checkWorkspace(q *api.CreateSandbox) error {
	w := q.Workspace
	switch {
	case w == nil:
		return nil
	case w.Git == "":
		return &InvalidError{"/workspace/git", "is missing"}
	case q.Template != "":
		return &InvalidError{"/workspace", "excludes template, which has files"}
	case w.Ref != "" && !refForm.MatchString(w.Ref):
		return &InvalidError{"/workspace/ref", "must be a branch or a tag"}
	case w.Depth < 0:
		return &InvalidError{"/workspace/depth", "must be at least 1"}
	}
	_, err := gitServer(w.Git)
	return err
}

// gitServer returns the rule for the server of a repository.
func gitServer(text string) (config.EgressRule, error) {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || u.Scheme != "https" || u.Host == "" || u.User != nil || strings.ContainsFunc(text, isControl) {
		return config.EgressRule{}, &InvalidError{"/workspace/git", "must be https:// and a host, without a name and a password"}
	}
	var e config.Egress
	if err := e.AllowRule(u.Host); err != nil {
		return config.EgressRule{}, &InvalidError{"/workspace/git", withHint(err)}
	}
	return e.Allow[0], nil
}

// clone clones the repository of a request into the workspace of a new sandbox. Git runs
// inside, and reaches the server of the repository alone: whatever is in the repository,
// it is the sandbox's own.
func (s *Service) clone(ctx context.Context, r *Record, ready *provide.ReadySandbox, w *api.SandboxWorkspace) error {
	ctx, cancel := context.WithTimeout(ctx, cloneTimeout)
	defer cancel()
	server, err := s.openGit(ctx, r, ready, w.Git)
	if err != nil {
		return err
	}
	defer server.Close()
	command, err := r.command(&api.ExecRequest{Argv: cloneArguments(w), Env: map[string]string{"GIT_TERMINAL_PROMPT": "0"}}, server.environment())
	if err != nil {
		return err
	}
	var said bytes.Buffer
	command.Grant, command.Stderr, command.OutputLimit = server.grantID(), &said, cloneSaid
	if err := s.record(r, command); err != nil {
		return err
	}
	result, err := ready.Machine.Exec(ctx, command)
	if errors.Is(err, machine.ErrNotFound) {
		return errhint.With(fmt.Errorf("%w: the image has no git", ErrGit), "choose an image with git, or send the files with writeArchive")
	}
	if err == nil && result.ExitCode == 0 {
		return nil
	}
	return errors.Join(fmt.Errorf("%w: %s", ErrGit, terminal.Printable(strings.TrimSpace(said.String()))), err)
}

// cloneArguments are the program and arguments of a clone, which speaks HTTPS only.
func cloneArguments(w *api.SandboxWorkspace) []string {
	argv := []string{"git", "-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "clone", "--quiet", "--depth", strconv.FormatInt(max(w.Depth, 1), 10)}
	if w.Ref != "" {
		argv = append(argv, "--branch", w.Ref)
	}
	return append(argv, "--", w.Git, ".")
}

// openGit opens egress to the server of a repository, by a rule that a bound caller may
// have.
func (s *Service) openGit(ctx context.Context, r *Record, ready *provide.ReadySandbox, repository string) (*names, error) {
	server, err := gitServer(repository)
	if err != nil {
		return nil, err
	}
	if s.Egress == nil {
		return nil, fmt.Errorf("%s: %w", server, ErrEgress)
	}
	return s.openNames(ctx, r, ready.Handle, ready.Plan, func(operators *config.Egress) (*config.Egress, error) {
		rule, err := server, error(nil)
		if r.Details.Bound {
			rule, err = allowedServer(context.WithoutCancel(ctx), operators, server)
		}
		e := egressOf(operators, []string{rule.String()})
		return &e, err
	})
}

// allowedServer returns the rule for a server of git that the operator's rules allow:
// every connection to it, or reading with git alone.
func allowedServer(ctx context.Context, operators *config.Egress, server config.EgressRule) (config.EgressRule, error) {
	err := checkRulesAllowed(ctx, operators, []config.EgressRule{server})
	if err == nil {
		return server, nil
	}
	server.Git = config.GitRead
	if checkRulesAllowed(ctx, operators, []config.EgressRule{server}) == nil {
		return server, nil
	}
	return server, err
}
