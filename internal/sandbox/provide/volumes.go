package provide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/docker"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// PnpmStore is the volume that holds the packages of pnpm.
const PnpmStore = image.StoreVolume

// abandonedAfter is the age at which a volume without a fact counts as left by a
// crash: seeding takes minutes at most.
const abandonedAfter = time.Hour

// Volume is storage of the engine that sandboxes share, each with a layer of its
// own on top.
type Volume struct {
	Name    string    `json:"name"`
	Backend string    `json:"backend"` // whose engine has it
	Engine  string    `json:"engine"`  // the engine's name of it
	Image   string    `json:"image"`   // that it was filled from
	ImageID string    `json:"imageId"`
	Path    string    `json:"path"` // in sandboxes
	Seeded  time.Time `json:"seeded"`
	UsedBy  []string  `json:"usedBy,omitzero"`
}

func volumeFact(backend, name string) string { return "volume:" + backend + ":" + name }

func checkVolumeName(name string) error {
	if name != PnpmStore {
		return errhint.With(fmt.Errorf("volume %q: not known", name), "there is "+PnpmStore)
	}
	return nil
}

// Volume returns a volume that was seeded on a backend's engine; sandbox.ErrNotFound
// if none was.
func (a *Installation) Volume(ctx context.Context, backend, name string) (*Volume, error) {
	if err := checkVolumeName(name); err != nil {
		return nil, err
	}
	if backend == BackendLinux {
		return a.storedVolume(ctx, name)
	}
	fact, err := a.Registry.Fact(ctx, volumeFact(backend, name))
	if err != nil {
		return nil, err
	}
	if fact == "" {
		return nil, errhint.With(fmt.Errorf("volume %q: %w", name, sandbox.ErrNotFound), "fill it with `atoll volumes seed "+name+" --backend "+backend+"`")
	}
	v := &Volume{Backend: backend}
	if err := json.Unmarshal([]byte(fact), v); err != nil {
		return nil, fmt.Errorf("volume %q: %w", name, err)
	}
	engine, err := a.Engine(ctx, backend)
	if err != nil {
		return nil, err
	}
	there, err := engine.SharedVolumes(ctx, name)
	if err != nil {
		return nil, err
	}
	if _, ok := there[v.Engine]; !ok {
		return nil, errhint.With(fmt.Errorf("volume %q: the engine has lost it: %w", name, sandbox.ErrNotFound), "fill it again with `atoll volumes seed "+name+" --backend "+backend+"`")
	}
	v.UsedBy, err = engine.LayersOn(ctx, v.Engine)
	return v, err
}

// Volumes returns those that were seeded, on all engines.
func (a *Installation) Volumes(ctx context.Context) (list []*Volume, err error) {
	for _, backend := range VolumeBackends {
		v, err := a.Volume(ctx, backend, PnpmStore)
		if errors.Is(err, sandbox.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// VolumeBackends are those that have volumes.
var VolumeBackends = []string{BackendDocker, BackendPodman, BackendLinux}

// VolumeBackend is the backend that keeps the volumes that are meant: the one that was
// asked for, or that of the default agent's sandboxes; of backends that are chosen by
// themselves Docker, or linux where Docker does not answer.
func (a *Installation) VolumeBackend(asked string) (string, error) {
	if asked == "" {
		agent, err := a.Config.Resolve(a.Config.DefaultAgent())
		if err != nil {
			return "", err
		}
		switch configured := agent.Sandbox.Backend; {
		case slices.Contains(VolumeBackends, configured):
			asked = configured
		case ProbeEngine(a.EngineHost(BackendDocker)) != nil:
			asked = BackendLinux
		default:
			asked = BackendDocker
		}
	}
	if !slices.Contains(VolumeBackends, asked) {
		return "", errhint.With(fmt.Errorf("backend %q: it has no volumes", asked), "there are "+strings.Join(VolumeBackends, ", "))
	}
	return asked, nil
}

// SeedVolume fills a volume from an image, "" being the newest store that was
// built. A volume that was filled from the same image is left alone.
func (a *Installation) SeedVolume(ctx context.Context, backend, name, from string, progress io.Writer) (v *Volume, made bool, err error) {
	if err := checkVolumeName(name); err != nil {
		return nil, false, err
	}
	if backend == BackendLinux {
		return a.seedStored(ctx, name, from)
	}
	engine, err := a.Engine(ctx, backend)
	if err != nil {
		return nil, false, err
	}
	info, ref, err := storeImage(ctx, engine, from, progress)
	if err != nil {
		return nil, false, err
	}
	if v, err = a.Volume(ctx, backend, name); err == nil && v.ImageID == info.ID {
		return v, false, nil
	}
	if err != nil && !errors.Is(err, sandbox.ErrNotFound) {
		return nil, false, err
	}
	v = &Volume{Name: name, Backend: backend, Image: ref, ImageID: info.ID, Path: image.StorePath, Seeded: time.Now().UTC().Truncate(time.Second)}
	if v.Engine, err = engine.SeedVolume(ctx, name, info.ID, v.Path); err != nil {
		return nil, false, fmt.Errorf("volume %q: %w", name, err)
	}
	if err := a.keepVolume(ctx, v); err != nil {
		return nil, false, errors.Join(err, engine.RemoveShared(context.WithoutCancel(ctx), v.Engine))
	}
	return v, true, a.tidyVolumes(ctx, engine, v)
}

func (a *Installation) keepVolume(ctx context.Context, v *Volume) error {
	fact, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.Registry.SetFact(ctx, volumeFact(v.Backend, v.Name), string(fact))
}

// storeImage is the image to fill a store from; one that is not there is pulled.
func storeImage(ctx context.Context, engine *docker.Runtime, from string, progress io.Writer) (info *docker.ImageInfo, ref string, err error) {
	if from == "" {
		if from, err = engine.NewestImage(ctx, image.LabelLockfile); err != nil {
			return nil, "", err
		}
		if from == "" {
			return nil, "", errhint.With(errors.New("no store of packages was built"), "build one with `atoll images build pnpm-store --lockfile pnpm-lock.yaml`, or name one with --from")
		}
	}
	info, err = engine.ImageInfo(ctx, from)
	if errors.Is(err, sandbox.ErrNoImage) {
		if err := engine.Pull(ctx, from, progress); err != nil {
			return nil, "", err
		}
		info, err = engine.ImageInfo(ctx, from)
	}
	return info, from, err
}

// tidyVolumes removes volumes that another took the place of, or that a crash
// left, unless a sandbox still stands on them.
func (a *Installation) tidyVolumes(ctx context.Context, engine *docker.Runtime, current *Volume) error {
	all, err := engine.SharedVolumes(ctx, current.Name)
	if err != nil {
		return err
	}
	for name, made := range all {
		if name == current.Engine || made.After(time.Now().Add(-abandonedAfter)) {
			continue
		}
		if err := engine.RemoveShared(ctx, name); err != nil && !errors.Is(err, sandbox.ErrBusy) {
			return err
		}
	}
	return nil
}

// RemoveVolume removes a volume and everything of its name that is left on the
// engine. One that a sandbox stands on stays.
func (a *Installation) RemoveVolume(ctx context.Context, backend, name string) error {
	if err := checkVolumeName(name); err != nil {
		return err
	}
	if backend == BackendLinux {
		return a.removeStored(ctx, name)
	}
	engine, err := a.Engine(ctx, backend)
	if err != nil {
		return err
	}
	all, err := engine.SharedVolumes(ctx, name)
	if err != nil {
		return err
	}
	for own := range all {
		if err := engine.RemoveShared(ctx, own); err != nil {
			return errhint.With(err, "end what uses it first: `atoll sandbox list`")
		}
	}
	return a.Registry.SetFact(ctx, volumeFact(backend, name), "")
}
