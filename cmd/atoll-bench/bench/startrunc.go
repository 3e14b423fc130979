package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/seccomp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// runcCrowd runs many containers at once, as crowd makes sandboxes, and returns
// how many a second; 0 if there is no runc that we may use.
func (s *startStage) runcCrowd(ctx context.Context, r *Report) (rate float64, err error) {
	if _, err := exec.LookPath("runc"); err != nil || os.Geteuid() != 0 {
		fmt.Fprintln(s.options.Progress, "no runc, or not root: its row is left out")
		return 0, nil
	}
	bundle := filepath.Join(s.dir, "bundle")
	if err := makeBundle(ctx, bundle, s.limits); err != nil {
		return 0, err
	}
	fmt.Fprintf(s.options.Progress, "%d at once by runc …\n", crowdCount)
	failures := make([]error, crowdCount)
	var wg sync.WaitGroup
	start := time.Now()
	for n := range crowdCount {
		wg.Go(func() {
			_, failures[n] = s.command(ctx, "runc", "--root", filepath.Join(s.dir, "runc"), "run", "--bundle", bundle,
				fmt.Sprintf("%s-%d", filepath.Base(s.dir), n))
		})
	}
	wg.Wait()
	rate = crowdCount / time.Since(start).Seconds()
	r.Rows = append(r.Rows, row(fmt.Sprintf("%d runc run at once, a second", crowdCount), "1/s", []float64{rate}))
	return rate, errors.Join(failures...)
}

// makeBundle writes what runc makes a container from: its own default, but for
// the user, the filter, the root and the limits, which are ours.
func makeBundle(ctx context.Context, dir string, limits sandbox.Limits) error {
	for _, name := range []string{"usr", "proc", "sys", "dev", "tmp", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, "rootfs", name), 0o755); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(dir, "rootfs", name)); err != nil {
			return err
		}
	}
	if out, err := exec.CommandContext(ctx, "runc", "spec", "--bundle", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("runc spec: %w: %s", err, out)
	}
	return adaptBundle(filepath.Join(dir, "config.json"), limits)
}

// bundle is the part of a container's configuration that is changed here.
type bundle struct {
	Process map[string]any   `json:"process"`
	Mounts  []map[string]any `json:"mounts"`
	Linux   map[string]any   `json:"linux"`
}

func adaptBundle(path string, limits sandbox.Limits) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var all map[string]any
	var b bundle
	if err := errors.Join(json.Unmarshal(text, &all), json.Unmarshal(text, &b)); err != nil {
		return err
	}
	if err := b.adapt(limits); err != nil {
		return err
	}
	all["process"], all["mounts"], all["linux"] = b.Process, b.Mounts, b.Linux
	if text, err = json.Marshal(all); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func (b *bundle) adapt(limits sandbox.Limits) error {
	filter, err := seccomp.Profile(runtime.GOARCH, seccomp.PlainModes)
	if err != nil {
		return err
	}
	b.Process["terminal"], b.Process["args"], b.Process["capabilities"] = false, []string{truth}, map[string]any{}
	delete(b.Process, "rlimits")
	for target, kind := range map[string]string{"/usr": "bind", "/tmp": "tmpfs"} {
		options := []string{"nosuid", "nodev"}
		if kind == "bind" {
			options = append(options, "bind", "ro")
		}
		b.Mounts = append(b.Mounts, map[string]any{"destination": target, "type": kind, "source": target, "options": options})
	}
	b.Linux["resources"] = map[string]any{"memory": map[string]int64{"limit": limits.Memory}, "pids": map[string]int64{"limit": limits.Pids}}
	const users = 1 << 16 // its terminals belong to a group of their own
	same := []map[string]int{{"containerID": 0, "hostID": 0, "size": users}}
	b.Linux["uidMappings"], b.Linux["gidMappings"], b.Linux["seccomp"] = same, same, json.RawMessage(filter)
	spaces, _ := b.Linux["namespaces"].([]any)
	b.Linux["namespaces"] = append(spaces, map[string]string{"type": "user"})
	return nil
}
