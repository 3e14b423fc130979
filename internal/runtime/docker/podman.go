package docker

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/moby/moby/api/types/container"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Podman's compatible API differs from Docker's in these points:
//   - the engine's account of itself leaves out what it cannot enforce (readPodmanInfo)
//   - a seccomp profile is named by a path, not given in full (seccompFile)
//   - a read-only root gets writable /tmp, /run and /var/tmp unless something
//     else is mounted there (podmanTmpfs)
//   - a temporary file system starts with a copy of what it covers (podmanTmpfs)
//   - without root, uids are mapped unless asked otherwise (userNamespace)
//   - missing bind sources are created (pinned before, verified after)
//   - GPU requests need release 5 (podmanGPURelease)
//   - image names come back with a prefix (labelImage holds what was asked)

// podmanGPURelease is the first whose compatible API honours GPU requests.
const podmanGPURelease = 5

// podmanInfo is the part of Podman's own account of itself that decides what it
// can enforce.
type podmanInfo struct {
	Host struct {
		CgroupControllers []string `json:"cgroupControllers"`
		Security          struct {
			AppArmor bool `json:"apparmorEnabled"`
			Rootless bool `json:"rootless"`
			Seccomp  bool `json:"seccompEnabled"`
			SELinux  bool `json:"selinuxEnabled"`
		} `json:"security"`
	} `json:"host"`
}

// readPodmanInfo corrects the compatible account, which says the same everywhere:
// a Podman without root, for one, has only the controllers that were given to
// its user.
func (r *Runtime) readPodmanInfo(ctx context.Context, f *facts) error {
	status, body, err := r.engine.get(ctx, "/v4.0.0/libpod/info")
	if err != nil {
		return r.engine.explain(err)
	}
	var own podmanInfo
	if err := json.Unmarshal(body, &own); err != nil || status != http.StatusOK {
		return fmt.Errorf("engine %s does not tell what it can enforce (status %d): %w", r.options.Host, status, sandbox.ErrUnsupported)
	}
	f.applyPodmanInfo(&own)
	return nil
}

func (f *facts) applyPodmanInfo(own *podmanInfo) {
	f.SecurityOptions = nil
	for option, on := range map[string]bool{
		"apparmor": own.Host.Security.AppArmor, "rootless": own.Host.Security.Rootless,
		"seccomp": own.Host.Security.Seccomp, "selinux": own.Host.Security.SELinux,
	} {
		if on {
			f.SecurityOptions = append(f.SecurityOptions, "name="+option)
		}
	}
	has := func(controller string) bool { return slices.Contains(own.Host.CgroupControllers, controller) }
	f.MemoryLimit = f.MemoryLimit && has("memory")
	f.SwapLimit = f.SwapLimit && has("memory")
	f.PidsLimit = f.PidsLimit && has("pids")
	f.CPUCfsQuota = f.CPUCfsQuota && has("cpu")
}

// sealedTmpfs is put where Podman would make a place writable that the spec
// leaves read-only.
const sealedTmpfs = "ro,noexec,nosuid,nodev,size=4k,notmpcopyup"

func podmanTmpfs(spec *sandbox.Spec, mounts map[string]string) {
	for target, options := range mounts {
		mounts[target] = options + ",notmpcopyup"
	}
	if !spec.ReadOnlyRoot {
		return
	}
	taken := map[string]bool{}
	for _, target := range targets(spec) {
		taken[path.Clean(target)] = true
	}
	for _, target := range []string{"/run", "/tmp", "/var/tmp"} {
		if !taken[target] {
			mounts[target] = sealedTmpfs
		}
	}
}

// userNamespace keeps the sandbox's uid the same on the host where Podman runs
// without root, so that files in the workspace belong to whom they should.
func (r *recipe) userNamespace() container.UsernsMode {
	if r.flavor != Podman || !r.rootless {
		return ""
	}
	user, ok := parseAccount(r.spec.User)
	switch {
	case !ok:
		return "keep-id"
	case user.gid < 0:
		return container.UsernsMode(fmt.Sprintf("keep-id:uid=%d", user.uid))
	}
	return container.UsernsMode(fmt.Sprintf("keep-id:uid=%d,gid=%d", user.uid, user.gid))
}
