package provide

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

const (
	// DirectoryHome is the home inside a directory's sandbox. It is outside the
	// workspace and kept in the state directory.
	DirectoryHome = "/home/agent"
	// DirectoryAccess is what a directory's sandbox sees of it, unless the caller
	// or the entry of agent dir says otherwise.
	DirectoryAccess = config.AccessOverlay

	homesDir = "homes"
)

// DirectoryOptions say how the sandbox of a directory is to be.
type DirectoryOptions struct {
	Access config.Access // "" is that of agent dir, or DirectoryAccess
	Image  string        // "" is the recorded one, or that of agent dir, or the host's programs
	// Programs are files or directories of the host that are shown read-only at
	// their own paths.
	Programs []string
	// Exact refuses a running sandbox that was made with other settings.
	Exact bool
	// Run is the id of a run with a sandbox and an overlay of its own; "" is the
	// directory's sandbox.
	Run string
	// Adjust, if set, changes the settings after everything else.
	Adjust func(*config.Agent)
}

// Directory returns the directory that cwd belongs to, without an id.
func (s *Settings) Directory(cwd string) (*directory.Directory, error) {
	return directory.Locate(cwd, hostpath.Homes(s.Getenv))
}

// Directories are the records of this installation's directories.
func (s *Settings) Directories() directory.Records {
	return directory.Records{State: s.Paths.AtollState}
}

// DirectorySubject returns the subject of the sandbox of a recorded directory, or of a
// run on a directory, which needs no record.
func (s *Settings) DirectorySubject(d *directory.Directory, o DirectoryOptions) Subject {
	name := d.ID
	if o.Run != "" {
		name = "run:" + o.Run
	}
	return Subject{
		SessionKey: "agent:" + config.DirectoryAgent + ":" + name,
		Adjust:     func(agent *config.Agent) { adjustDirectory(agent, d, o) },
		Amend:      func(_ context.Context, p *plan.Plan) error { return s.amendDirectory(p, o) },
	}
}

// adjustDirectory sets what the sandbox of a directory has. The entry of agent dir in the
// configuration goes before the defaults here, and what the caller asks before both.
func adjustDirectory(agent *config.Agent, d *directory.Directory, o DirectoryOptions) {
	box := &agent.Sandbox
	origin := config.Origin{Source: "agent", Path: "the directory's sandbox"}
	own := func(key string) bool { return agent.Origins[key].Source == "agent" }
	agent.Workspace, box.Scope, box.Mode = d.Path, config.ScopeSession, config.ModeAll
	agent.Origins["workspace"], agent.Origins["sandbox.scope"] = origin, origin
	if o.Access != "" || !own("sandbox.workspaceAccess") {
		box.WorkspaceAccess = cmp.Or(o.Access, DirectoryAccess)
		agent.Origins["sandbox.workspaceAccess"] = origin
	}
	image := cmp.Or(o.Image, d.Image, rootfs.HostName)
	isPossible := !rootfs.IsHost(image) || !needsImage(agent)
	if isPossible && (o.Image != "" || !own("sandbox.docker.image")) {
		box.Docker.Image = image
		agent.Origins["sandbox.docker.image"] = origin
	}
	if o.Adjust != nil {
		o.Adjust(agent)
	}
}

// needsImage reports whether the agent's sandboxes are containers of an engine, which
// cannot be made of the host's programs: they have the configured image.
func needsImage(agent *config.Agent) bool {
	return agent.Sandbox.Backend == BackendDocker || agent.Sandbox.Backend == BackendPodman
}

// ProvideDirectory makes the sandbox of a recorded directory ready, with its home.
func (a *Installation) ProvideDirectory(ctx context.Context, d *directory.Directory, o DirectoryOptions) (*ReadySandbox, error) {
	return a.Provide(ctx, a.DirectorySubject(d, o), Options{})
}

// amendDirectory adds the home and the programs of the host to the plan of a
// directory's sandbox.
func (s *Settings) amendDirectory(p *plan.Plan, o DirectoryOptions) error {
	if err := s.addHome(p); err != nil {
		return &sandbox.ProvisionError{Name: p.Spec.Name, Step: "home", Err: err}
	}
	if needsImage(p.Agent) {
		o.Programs = nil
	}
	if err := addPrograms(p, o.Programs); err != nil {
		return &sandbox.ProvisionError{Name: p.Spec.Name, Step: "programs", Err: err}
	}
	p.Spec.Exact, p.Spec.ReplaceIdle = o.Exact, true
	return nil
}

// addHome mounts the home of a directory's sandbox, made if it is not there.
func (s *Settings) addHome(p *plan.Plan) error {
	dir := s.homeDir(p)
	if err := makeOwned(dir, p.Spec.User); err != nil {
		return err
	}
	if err := s.writeGitConfig(p, dir); err != nil {
		return err
	}
	p.Home = DirectoryHome
	return addMount(p, sandbox.Mount{Source: dir, Target: DirectoryHome, Kind: sandbox.MountBind, Enclosed: true})
}

// homeDir returns the directory of the host that is the home of a directory's sandbox.
func (s *Settings) homeDir(p *plan.Plan) string {
	return filepath.Join(s.Paths.AtollState, homesDir, policy.DirName(p.ScopeKey))
}

// addPrograms shows programs of the host, which are part of the hash: a sandbox that
// was made without them is made anew.
func addPrograms(p *plan.Plan, programs []string) error {
	for _, program := range programs {
		if err := addMount(p, sandbox.Mount{Source: program, Target: path.Clean(program), ReadOnly: true, Kind: sandbox.MountBind}); err != nil {
			return err
		}
	}
	if len(programs) == 0 {
		return nil
	}
	for _, spec := range specs(p) {
		spec.MountsHash, spec.ConfigHash = hashWith(spec.MountsHash, programs), hashWith(spec.ConfigHash, programs)
	}
	return nil
}

// hashWith returns a hash that depends on more texts, of the same length.
func hashWith(hash string, more []string) string {
	sum := sha256.Sum256([]byte(hash + "\n" + strings.Join(more, "\n")))
	return hex.EncodeToString(sum[:])[:len(hash)]
}

// addMount adds a mount to the sandboxes of a plan and notes which file its source is.
func addMount(p *plan.Plan, m sandbox.Mount) error {
	facts, err := hostpath.Identify(m.Source)
	switch {
	case err != nil:
		return err
	case !facts.Exists:
		return fmt.Errorf("%s does not exist", m.Source)
	case m.Enclosed && facts.Kind != hostpath.KindDirectory:
		return errors.New(m.Source + " is no directory")
	}
	m.Source, m.Device, m.Inode = facts.Canonical, facts.Device, facts.Inode
	for _, spec := range specs(p) {
		spec.Mounts = append(spec.Mounts, m)
	}
	return nil
}
