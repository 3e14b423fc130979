package setup

import (
	"fmt"
	"path"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"golang.org/x/sys/unix"
)

// backlog is how many hosts may connect before the guest accepts.
const backlog = 128

// listen listens on the guest's socket, so that hosts can connect before the guest runs,
// without polling. Then it makes the directory read-only: it is on the host's disk, which
// code inside could fill.
func (b *builder) listen() error {
	if b.plan.Socket == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: b.plan.Socket}); err != nil {
		return err
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return err
	}
	if err := seal(path.Dir(b.plan.Socket), 0); err != nil {
		return fmt.Errorf("%s: %w", path.Dir(b.plan.Socket), err)
	}
	return unix.Dup3(fd, blueprint.Listener, 0)
}
