package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// lateCreation is how long a creation whose answer was lost may take to show.
const lateCreation = 2 * time.Second

// Create makes the container of spec, stopped.
func (r *Runtime) Create(ctx context.Context, spec *sandbox.Spec) (sandbox.Instance, error) {
	i, err := r.create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", spec.Name, err)
	}
	return i, nil
}

func (r *Runtime) create(ctx context.Context, spec *sandbox.Spec) (_ *Instance, err error) {
	if err := refuse(spec); err != nil {
		return nil, err
	}
	if isLayered(spec) {
		defer func() {
			if err != nil && !errors.Is(err, sandbox.ErrExists) {
				err = errors.Join(err, r.removeLayers(context.WithoutCancel(ctx), spec.Name))
			}
		}()
	}
	recipe, pins, err := r.prepareCreate(ctx, spec)
	if err != nil {
		return nil, err
	}
	wire := wireDir(r.options.StateDir, spec.Name)
	made, err := makeWire(wire)
	if err != nil {
		return nil, fmt.Errorf("wire directory: %w", err)
	}
	i, err := r.build(ctx, recipe, wire, pins)
	if err != nil && made && !errors.Is(err, sandbox.ErrExists) {
		err = errors.Join(err, os.RemoveAll(wire))
	}
	return i, err
}

// prepareCreate looks up everything that the container is made from.
func (r *Runtime) prepareCreate(ctx context.Context, spec *sandbox.Spec) (*recipe, []pin, error) {
	known, err := r.facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	image, err := r.inspectImage(ctx, spec.Image)
	if err != nil {
		return nil, nil, err
	}
	user := effectiveUser(spec, image)
	if err := reachable(r.options.Flavor, known, user); err != nil {
		return nil, nil, err
	}
	profile, err := r.seccompOption(spec, image.arch)
	if err != nil {
		return nil, nil, err
	}
	guest, err := r.deliverGuest(ctx, known, image)
	if err != nil {
		return nil, nil, err
	}
	if gaps := slices.Concat(diskGaps(known, spec), storageGaps(known, spec), overlayGaps(known, spec)); len(gaps) > 0 {
		return nil, nil, errhint.With(fmt.Errorf("%s: %s: %w", gaps[0].Field, gaps[0].Reason, sandbox.ErrUnsupported), gaps[0].Remedy)
	}
	disks, err := disksOf(known, spec)
	if err != nil {
		return nil, nil, err
	}
	made := &recipe{
		disks: disks, spec: withDefaults(known, spec), flavor: r.options.Flavor, rootless: known.secured("rootless"), installation: r.options.Installation,
		nonce: rand.Text(), now: time.Now(), seccomp: profile, mounts: []mount.Mount{guest},
		wireOwner: wireOwner(user, known),
	}
	pins, err := made.addMounts()
	if err == nil {
		err = r.addResolvConf(made)
	}
	if err == nil {
		err = made.addRoots()
	}
	if err == nil {
		err = r.addLayers(ctx, made)
	}
	if err == nil {
		err = r.addOverlays(ctx, made)
	}
	return made, pins, err
}

// effectiveUser returns the user of the sandbox: that of the spec, or the image's.
func effectiveUser(spec *sandbox.Spec, image imageFacts) string {
	return cmp.Or(spec.User, image.user, "0:0")
}

// wireOwner returns the ids of that user on this host, nil if they are not known.
func wireOwner(user string, known *facts) *account {
	owner, ok := parseAccount(user)
	if !ok || known.mapsUsers() || os.Geteuid() != 0 {
		return nil
	}
	return &owner
}

// addMounts pins the spec's mounts, and adds them and the volumes, but for those
// that need a layer first.
func (r *recipe) addMounts() ([]pin, error) {
	var pins []pin
	var problems []error
	for _, m := range r.spec.Mounts {
		p, err := pinMount(m)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		pins = append(pins, p)
		if m.Overlay == nil { // else a volume, made later
			r.mounts = append(r.mounts, p.mount(m.ReadOnly))
		}
	}
	for _, v := range r.spec.Volumes {
		if !v.Private {
			r.addVolume(v, v.Name)
		}
	}
	return pins, errors.Join(problems...)
}

func (r *recipe) addVolume(v sandbox.Volume, name string) {
	r.mounts = append(r.mounts, mount.Mount{Type: mount.TypeVolume, Source: name, Target: v.Target, ReadOnly: v.ReadOnly})
}

// build makes the container and checks it against the spec.
func (r *Runtime) build(ctx context.Context, recipe *recipe, wire string, pins []pin) (_ *Instance, err error) {
	wirePin, err := pinPath(wire, wireTarget)
	if err != nil {
		return nil, err
	}
	recipe.mounts = append(recipe.mounts, wirePin.mount(false))
	options, err := recipe.options()
	if err != nil {
		return nil, err
	}
	id, err := r.createContainer(ctx, options, recipe.nonce)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.discardNow(ctx, id))
		}
	}()
	if err := openWire(wire, recipe.wireOwner); err != nil {
		return nil, fmt.Errorf("wire directory: %w", err)
	}
	found, err := r.inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := verify(options.HostConfig, found); err != nil {
		return nil, err
	}
	pins = append(pins, wirePin)
	for _, p := range pins {
		if err := p.hold(); err != nil {
			return nil, err
		}
	}
	made := r.instance(recipe.spec.Name, containerStateOf(found))
	made.checked = pins
	return made, nil
}

// createContainer makes the container and returns its id. If the answer is
// lost, the engine may have made it all the same: it is looked for, by the
// nonce, and removed.
func (r *Runtime) createContainer(ctx context.Context, options client.ContainerCreateOptions, nonce string) (string, error) {
	made, err := ask(ctx, r.engine, func(c *client.Client) (client.ContainerCreateResult, error) {
		return c.ContainerCreate(ctx, options)
	})
	switch {
	case err == nil:
		return made.ID, r.checkWarnings(ctx, made)
	case isNameTaken(err):
		return "", r.nameOwnerError(ctx, options.Name)
	case isNotFound(err):
		return "", createNotFound(options.Config.Image, err)
	case errors.Is(err, sandbox.ErrUnavailable) || ctx.Err() != nil:
		return "", errors.Join(err, r.removeLate(ctx, options.Name, nonce))
	}
	return "", startHint(err)
}

// checkWarnings fails a creation whose limits the engine says it dropped.
func (r *Runtime) checkWarnings(ctx context.Context, made client.ContainerCreateResult) error {
	for _, warning := range made.Warnings {
		r.logger.WarnContext(ctx, "engine warns", "container", made.ID, "warning", warning)
		if strings.Contains(strings.ToLower(warning), "discarded") {
			return errors.Join(fmt.Errorf("%s: %w", warning, sandbox.ErrUnsupported), r.discardNow(ctx, made.ID))
		}
	}
	return nil
}

// isNameTaken recognises a conflict of names. Podman calls it an internal error.
func isNameTaken(err error) bool {
	return err != nil && (isConflict(err) || strings.Contains(err.Error(), "is already in use"))
}

// nameOwnerError says who has the name that was wanted. A container that is being
// made or removed has its name before and after it can be seen.
func (r *Runtime) nameOwnerError(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, lateCreation)
	defer cancel()
	for {
		_, err := r.open(ctx, name)
		if err == nil {
			return sandbox.ErrExists
		}
		if !errors.Is(err, sandbox.ErrNotFound) {
			return err
		}
		if pause(ctx, pollInterval) != nil {
			return errhint.With(fmt.Errorf("its name is taken by a container that is being made or removed: %w", sandbox.ErrBusy), "try again")
		}
	}
}

func foreign(name string) error {
	return errhint.With(sandbox.ErrForeign,
		fmt.Sprintf("rename or remove that container (docker rm %s), or set another docker.containerPrefix", name))
}

// createNotFound distinguishes a missing image from a missing network.
func createNotFound(image string, err error) error {
	if strings.Contains(strings.ToLower(err.Error()), "image") {
		return noImage(image)
	}
	return err
}

// removeLate removes the container of one creation if it shows up after all.
func (r *Runtime) removeLate(ctx context.Context, name, nonce string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateCreation)
	defer cancel()
	for {
		found, err := r.inspect(ctx, name)
		switch {
		case err == nil && found.Config.Labels[labelNonce] == nonce:
			return r.discardNow(ctx, found.ID)
		case err == nil, errors.Is(err, sandbox.ErrUnavailable):
			return nil // another's; or gone with the engine, whose label finds it later
		}
		if pause(ctx, pollInterval) != nil {
			return nil
		}
	}
}

// discardNow removes in time of its own.
func (r *Runtime) discardNow(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return r.discard(ctx, id)
}
