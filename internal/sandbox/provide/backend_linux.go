package provide

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// imageStore is where images of the linux backend are, below the state directory.
const imageStore = "images"

// HostImage is the image of sandboxes that are made of the host's own programs.
const HostImage = rootfs.HostName

// roots opens the store of images when it is first used, so that a mere check makes
// no directory.
type roots struct{ open func() (*rootfs.Store, error) }

func (r roots) Resolve(ctx context.Context, ref string, id rootfs.Identity) (*rootfs.Root, *rootfs.Pin, error) {
	store, err := r.open()
	if err != nil {
		return nil, nil, err
	}
	return store.Resolve(ctx, ref, id)
}

func (r roots) Unpin(owner string) error {
	store, err := r.open()
	if err != nil {
		return err
	}
	return store.Unpin(owner)
}

// Fork and PinRoot are for sandboxes with the files of another.
func (r roots) Fork(root *rootfs.Root) (*rootfs.Root, error) {
	store, err := r.open()
	if err != nil {
		return nil, err
	}
	return store.Fork(root)
}

func (r roots) PinRoot(ctx context.Context, owner string, root *rootfs.Root) error {
	store, err := r.open()
	if err != nil {
		return err
	}
	return store.PinRoot(ctx, owner, root)
}

// hidden are the host's paths that no view of it shows.
func (s *Settings) hidden() []string { return []string{s.Paths.AtollState, s.Paths.Home} }

func (s *Settings) openImages() (*rootfs.Store, error) {
	return rootfs.Open(filepath.Join(s.Paths.AtollState, imageStore), rootfs.Options{Hide: s.hidden(), Outbound: s.Outbound})
}

// withLinux prepares the runtime that needs no engine.
func (s *Settings) withLinux() *Settings {
	s.images = sync.OnceValues(s.openImages)
	s.linux = sync.OnceValues(func() (*linux.Runtime, error) {
		return linux.New(linux.Options{StateDir: s.Paths.AtollState, Guest: guestbin.Find, Roots: roots{s.images}})
	})
	return s
}

// Linux opens the runtime that needs no engine.
func (s *Settings) Linux() (*linux.Runtime, error) { return s.linux() }

// obstacleOf is all that keeps a plan from being carried out without an engine;
// "" if nothing does.
func obstacleOf(gaps []sandbox.Gap) string {
	var obstacles []string
	for _, gap := range gaps {
		obstacles = append(obstacles, gap.Field+": "+gap.Reason)
	}
	return strings.Join(obstacles, "; ")
}

// imageGap is the field of an image that is not there.
const imageGap = "docker.image"

// linuxGaps is what a plan asks for and this machine cannot enforce without an
// engine, each once.
func (s *Settings) linuxGaps(ctx context.Context, p *plan.Plan) (gaps []sandbox.Gap) {
	rt, err := s.linux()
	if err != nil {
		return []sandbox.Gap{{Field: "backend", Reason: err.Error(), Remedy: errhint.Of(err)}}
	}
	if image := p.Spec.Image; !UsesHostPrograms(p.Agent) && s.ImportedImage(ctx, image) == nil {
		gaps = append(gaps, sandbox.Gap{Field: imageGap, Reason: image + " is not imported", Remedy: rootfs.ImportHint(image)})
	}
	for _, spec := range specs(p) {
		for _, gap := range rt.Check(ctx, spec) {
			if !slices.Contains(gaps, gap) {
				gaps = append(gaps, gap)
			}
		}
	}
	return gaps
}

// Unavailable is what a plan asks for and cannot have, with the remedies, if it
// is to be made without an engine, or cannot be made at all. An engine is not
// asked.
func (s *Settings) Unavailable(ctx context.Context, p *plan.Plan, backend Backend) []sandbox.Gap {
	if backend.Effective != BackendLinux && backend.Effective != "" {
		return nil
	}
	return s.linuxGaps(ctx, p)
}

// DefaultLimits returns the limits that are not configured and that hold for a
// plan's sandbox, and why others do not, "" if all do. An engine is not asked:
// it has control groups, or says so when a sandbox is made.
func (s *Settings) DefaultLimits(p *plan.Plan, backend Backend) (held sandbox.Defaults, why string) {
	held = p.Spec.Limits.Defaults
	if backend.Effective == BackendKubernetes {
		return sandbox.Defaults{Memory: kubekeys.DefaultMemory}, "the kubelets of the nodes limit processes"
	}
	if backend.Effective != BackendLinux {
		return held, ""
	}
	rt, err := s.linux()
	if err != nil {
		return sandbox.Defaults{}, err.Error()
	}
	if enforced := rt.Enforceable(p.Spec); enforced != held {
		return enforced, "this user cannot make control groups; see atoll doctor"
	}
	return held, ""
}

// RootID is what the root of a plan's sandboxes is made of at present, if they
// are made without an engine: the host's fingerprint or an image's digest. It is
// part of the configuration's hash.
func (s *Settings) RootID(ctx context.Context, p *plan.Plan, backend Backend) string {
	if backend.Effective != BackendLinux {
		return ""
	}
	_, id, _ := s.rootOf(ctx, p) // what is not here has none
	return id
}

// UsesHostPrograms reports whether the linux backend would show the host's own
// programs: if no image is configured, or the host is configured as the image.
func UsesHostPrograms(agent *config.Agent) bool {
	return agent.Origins["sandbox.docker.image"].Source == "default" || rootfs.IsHost(agent.Sandbox.Docker.Image)
}

// ImportedImage returns the image of that name in the store; nil if there is none.
func (s *Settings) ImportedImage(ctx context.Context, ref string) *rootfs.Image {
	if _, err := os.Stat(filepath.Join(s.Paths.AtollState, imageStore)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	store, err := s.images()
	if err != nil {
		return nil
	}
	image, err := store.Find(ctx, ref)
	if err != nil {
		return nil
	}
	return image
}

// fitLinux finishes a plan for the linux backend: an image that is not
// configured is the host. What the root is made of is part of the hash: the host's
// fingerprint, or the digest that the image's name has now.
func (s *Settings) fitLinux(ctx context.Context, p *plan.Plan) error {
	image, id, err := s.rootOf(ctx, p)
	if err != nil || id == "" {
		return err
	}
	setRoot(p, image, id)
	if found := s.ImportedImage(ctx, image); found != nil && !rootfs.IsHost(image) {
		p.SearchPath = found.Config.SearchPath()
	}
	return nil
}

// setRoot sets what the root of a plan's sandboxes is made of, which is part of their
// hash.
func setRoot(p *plan.Plan, image, id string) {
	for _, spec := range specs(p) {
		sum := sha256.Sum256([]byte(strings.Join([]string{spec.ConfigHash, id}, "\n")))
		spec.Image, spec.ConfigHash = image, hex.EncodeToString(sum[:])[:len(spec.ConfigHash)]
		if spec.Settings != nil {
			spec.Settings["root"] = image + " " + id
		}
	}
}

// rootOf is the image of a plan and what it is at present; "" if it is not here.
func (s *Settings) rootOf(ctx context.Context, p *plan.Plan) (image, id string, err error) {
	if UsesHostPrograms(p.Agent) {
		id, err = rootfs.HostID(s.hidden()...)
		return rootfs.HostName, id, err
	}
	found := s.ImportedImage(ctx, p.Spec.Image)
	if found == nil {
		return p.Spec.Image, "", nil // making it fails, and says so
	}
	if !found.OnHost {
		return p.Spec.Image, found.ID, nil
	}
	id, err = rootfs.HostID(s.hidden()...)
	return p.Spec.Image, found.ID + " on " + id, err
}

// GuestProcess is the number that this host gives to process 1 of a sandbox of
// the linux backend; 0 if it does not run.
func (a *Installation) GuestProcess(ctx context.Context, name string) int {
	return a.processOf(ctx, name, BackendLinux)
}

// Fit finishes a plan for the backend that was chosen.
func (s *Settings) Fit(ctx context.Context, p *plan.Plan, backend string) error {
	for _, spec := range specs(p) {
		spec.Backend = backend
	}
	if backend == BackendLinux {
		return s.fitLinux(ctx, p)
	}
	return nil
}

var _ sandbox.Runtime = (*linux.Runtime)(nil)
