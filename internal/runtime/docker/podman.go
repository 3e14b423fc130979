package docker

import (
	"fmt"
	"path"

	"github.com/moby/moby/api/types/container"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Podman's compatible API differs from Docker's in these points:
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
