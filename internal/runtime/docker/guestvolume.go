package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Where a file of this host cannot be mounted, the guest travels in a volume of
// the engine. Volumes are directories, so this one is mounted as the guest's
// whole home and has a place for the wire to be mounted on. It is filled and
// read through a container that is never started.

// labelHelper marks that container; its value is the installation.
const labelHelper = "atoll.helper"

// helperLifetime is after how long a helper container must be a crash's
// remains. Filling takes a second.
const helperLifetime = 10 * time.Minute

func (p guestProgram) volume() string {
	return "atoll-guest-" + p.hash[:12] + "-" + p.arch
}

func (p guestProgram) volumeMount() mount.Mount {
	return mount.Mount{Type: mount.TypeVolume, Source: p.volume(), Target: guestHome, ReadOnly: true,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true}}
}

// deliverVolume fills the volume unless it holds the guest already. Two
// processes may do so at once: both write the same.
func (r *Runtime) deliverVolume(ctx context.Context, p guestProgram, image imageFacts) (mount.Mount, error) {
	there, err := r.hasVolume(ctx, p.volume())
	if err != nil {
		return mount.Mount{}, err
	}
	if there && r.guests.isDelivered(p.volume()) {
		return p.volumeMount(), nil
	}
	if err := r.fillVolume(ctx, p, image); err != nil {
		return mount.Mount{}, fmt.Errorf("guest volume %s: %w", p.volume(), err)
	}
	r.guests.setDelivered(p.volume())
	return p.volumeMount(), nil
}

func (s *guestStore) isDelivered(volume string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered[volume]
}

func (s *guestStore) setDelivered(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivered == nil {
		s.delivered = map[string]bool{}
	}
	s.delivered[volume] = true
}

func (r *Runtime) hasVolume(ctx context.Context, name string) (bool, error) {
	_, err := ask(ctx, r.engine, func(c *client.Client) (client.VolumeInspectResult, error) {
		return c.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	})
	if isNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func (r *Runtime) fillVolume(ctx context.Context, p guestProgram, image imageFacts) (err error) {
	r.removeOldHelpers(ctx)
	helper, err := r.createHelper(ctx, p, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.discard(ctx, helper)) }()
	if r.holdsGuest(ctx, helper, p) {
		return nil
	}
	if err := r.copyGuest(ctx, helper, p); err != nil {
		return err
	}
	if !r.holdsGuest(ctx, helper, p) {
		return errors.New("the engine does not give back what was put in")
	}
	return nil
}

// createHelper makes a container that has the volume and will never run.
func (r *Runtime) createHelper(ctx context.Context, p guestProgram, image imageFacts) (string, error) {
	m := p.volumeMount()
	m.ReadOnly = false
	options := client.ContainerCreateOptions{
		Name: "atoll-guest-fill-" + strings.ToLower(rand.Text()[:12]),
		Config: &container.Config{
			Image: image.id, Entrypoint: []string{guestTarget}, Cmd: []string{"version"},
			Labels: map[string]string{labelHelper: r.options.Installation},
		},
		HostConfig: &container.HostConfig{NetworkMode: "none", ReadonlyRootfs: true, Mounts: []mount.Mount{m}},
	}
	made, err := ask(ctx, r.engine, func(c *client.Client) (client.ContainerCreateResult, error) {
		return c.ContainerCreate(ctx, options)
	})
	return made.ID, err
}

func (r *Runtime) copyGuest(ctx context.Context, helper string, p guestProgram) error {
	archive, err := guestArchive(p)
	if err != nil {
		return err
	}
	_, err = ask(ctx, r.engine, func(c *client.Client) (client.CopyToContainerResult, error) {
		return c.CopyToContainer(ctx, helper, client.CopyToContainerOptions{DestinationPath: guestHome, Content: bytes.NewReader(archive)})
	})
	return err
}

// guestArchive is the content of the volume: the guest, and the directory that
// the wire is mounted on.
func guestArchive(p guestProgram) ([]byte, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	err := archive.WriteHeader(&tar.Header{Name: "wire/", Typeflag: tar.TypeDir, Mode: 0o755})
	if err == nil {
		err = archive.WriteHeader(&tar.Header{Name: "guest", Typeflag: tar.TypeReg, Mode: guestMode, Size: int64(len(p.body))})
	}
	if err == nil {
		_, err = archive.Write(p.body)
	}
	return buffer.Bytes(), errors.Join(err, archive.Close())
}

// holdsGuest reads the guest back: a volume filled by half, or changed, is not
// one that holds it.
func (r *Runtime) holdsGuest(ctx context.Context, helper string, p guestProgram) bool {
	out, err := ask(ctx, r.engine, func(c *client.Client) (client.CopyFromContainerResult, error) {
		return c.CopyFromContainer(ctx, helper, client.CopyFromContainerOptions{SourcePath: guestTarget})
	})
	if err != nil {
		return false
	}
	defer out.Content.Close()
	archive := tar.NewReader(out.Content)
	header, err := archive.Next()
	if err != nil || header.Typeflag != tar.TypeReg || header.Mode&0o7777 != guestMode || header.Uid != 0 || header.Size != int64(len(p.body)) {
		return false
	}
	sum := sha256.New()
	if _, err := io.CopyN(sum, archive, int64(len(p.body))); err != nil {
		return false
	}
	return hex.EncodeToString(sum.Sum(nil)) == p.hash
}

// removeOldHelpers clears away what a crash left.
func (r *Runtime) removeOldHelpers(ctx context.Context) {
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ContainerListResult, error) {
		return c.ContainerList(ctx, client.ContainerListOptions{All: true,
			Filters: client.Filters{}.Add("label", labelHelper+"="+r.options.Installation)})
	})
	if err != nil {
		return // the creation that follows says why
	}
	for _, helper := range found.Items {
		if time.Since(time.Unix(helper.Created, 0)) > helperLifetime {
			r.logger.InfoContext(ctx, "removing a helper container that a crash left", "container", helper.ID)
			_ = r.discard(ctx, helper.ID)
		}
	}
}
