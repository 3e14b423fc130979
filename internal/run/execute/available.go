package execute

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// availablePatience bounds how long a catalogue looks for what an agent needs.
const availablePatience = 5 * time.Second

// WhyUnavailable is why runs of a variant could not be carried out here; "" if
// nothing is in the way that can be seen without making a sandbox.
func (e *Executor) WhyUnavailable(ctx context.Context, v *run.Variant) string {
	if v.Remote != nil {
		return ""
	}
	for _, m := range v.Mounts {
		if _, err := os.Stat(m.Source); err != nil {
			return fmt.Sprintf("%s is missing", m.Source)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, availablePatience)
	defer cancel()
	if err := e.canProvide(ctx, v); err != nil {
		return err.Error()
	}
	return ""
}

// inStore looks for an image that needs no engine.
func (e *Executor) inStore(ctx context.Context, ref string) error {
	if ref == "" || rootfs.IsHost(strings.TrimSpace(ref)) {
		return nil
	}
	store, err := e.Images()
	if err != nil {
		return err
	}
	_, err = store.Find(ctx, ref)
	return err
}

// canProvide looks for a machinery, and for the image there.
func (e *Executor) canProvide(ctx context.Context, v *run.Variant) error {
	p, err := e.Plan(e.subject(&run.SandboxRequest{Run: "none", Agent: e.Config.DefaultAgent(), Image: v.Image, User: v.User, Memory: v.Memory, Binds: v.Binds}))
	if err != nil {
		return err
	}
	backend, err := e.Backend(ctx, p, "").Require()
	if err != nil {
		return err
	}
	switch backend {
	case provide.BackendLinux:
		return e.inStore(ctx, v.Image)
	case provide.BackendKubernetes: // its nodes pull images, and only they know which they have
		return nil
	}
	engine, err := e.ImageEngine(ctx, backend)
	if err != nil {
		return err
	}
	here, err := engine.HasImage(ctx, p.Spec.Image)
	if err == nil && !here {
		err = fmt.Errorf("the image %s is not here: `atoll images pull` or `atoll images build` brings it", p.Spec.Image)
	}
	return err
}
