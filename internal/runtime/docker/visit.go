package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Visit is a guest in a running container that Atoll did not make, as the
// container's own user, for as long as it is held: it ends with us, however we
// end. Everything in such a container is hostile, the guest included once it is
// there: nothing is believed but that bytes came from it.
type Visit struct {
	runtime *Runtime
	id      string
	dir     string   // inside; holds the guest and its socket
	held    net.Conn // its end is the guest's
}

// visitPatience bounds each step of coming and going.
const visitPatience = 30 * time.Second

// visitScript runs the guest until standard input ends, and clears up.
const visitScript = `"$1/guest" init --trust-uid --socket "$1/s" </dev/null & g=$!; cat >/dev/null; kill $g; wait $g; rm -rf "$1"`

// Visit brings the guest into a container by copying it to a fresh directory
// below root, which its user can write, and starts it there.
func (r *Runtime) Visit(ctx context.Context, name, root string) (_ *Visit, err error) {
	ctx, cancel := context.WithTimeout(ctx, visitPatience)
	defer cancel()
	v := &Visit{runtime: r}
	program, err := v.look(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", name, err)
	}
	for _, step := range []func() error{
		func() error { return v.makeDir(ctx, root) },
		func() error { return v.copyIn(ctx, program) },
		func() error { return v.begin(ctx) },
	} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("container %q: bring the guest in: %w", name, errors.Join(err, v.clear(ctx)))
		}
	}
	return v, nil
}

// clear takes away the directory of a guest that never began.
func (v *Visit) clear(ctx context.Context) error {
	if v.dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), visitPatience)
	defer cancel()
	conn, err := v.exec(ctx, "rm", "-rf", v.dir)
	if err != nil {
		return fmt.Errorf("take %s away again: %w", v.dir, err)
	}
	defer conn.Close()
	_, err = readUntil(ctx, conn)
	return err
}

// look finds the container, and the guest for it.
func (v *Visit) look(ctx context.Context, name string) (guestProgram, error) {
	found, err := v.runtime.inspect(ctx, name)
	if errors.Is(err, sandbox.ErrNotFound) {
		err = errhint.With(err, "`docker ps` lists the containers of the engine")
	}
	if err != nil {
		return guestProgram{}, err
	}
	if state := stateOf(found.State.Status); state != sandbox.StateRunning {
		return guestProgram{}, errhint.With(fmt.Errorf("%w: it is %s", sandbox.ErrNotRunning, state), "start it")
	}
	v.id = found.ID
	image, err := v.runtime.inspectImage(ctx, found.Image)
	if err != nil {
		return guestProgram{}, err
	}
	return v.runtime.guests.program(image.arch, v.runtime.options.Guest)
}

// freshName is what mktemp makes of the template.
var freshName = lazyregexp.New(`^\.atoll-[A-Za-z0-9]{6}$`)

func (v *Visit) makeDir(ctx context.Context, root string) error {
	conn, err := v.exec(ctx, "mktemp", "-d", path.Join(root, ".atoll-XXXXXX"))
	if err != nil {
		return err
	}
	defer conn.Close()
	said, err := readUntil(ctx, conn)
	dir := strings.TrimSpace(said)
	if err != nil || path.Dir(dir) != path.Clean(root) || !freshName.MatchString(path.Base(dir)) {
		return errhint.With(errors.Join(err, fmt.Errorf("no directory can be made in %s: %.200q", root, said)), "it must be a directory that the container's user can write, and mktemp must be there")
	}
	v.dir = dir
	return nil
}

// readUntil reads the output of a program, which is short.
func readUntil(ctx context.Context, conn net.Conn) (string, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	said, err := io.ReadAll(io.LimitReader(conn, maxComplaint))
	return string(said), err
}

func (v *Visit) copyIn(ctx context.Context, p guestProgram) error {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	err := archive.WriteHeader(&tar.Header{Name: "guest", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(p.body))})
	if err == nil {
		_, err = archive.Write(p.body)
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return err
	}
	_, err = ask(ctx, v.runtime.engine, func(c *client.Client) (client.CopyToContainerResult, error) {
		return c.CopyToContainer(ctx, v.id, client.CopyToContainerOptions{DestinationPath: v.dir, Content: bytes.NewReader(buffer.Bytes())})
	})
	return err
}

func (v *Visit) begin(ctx context.Context) (err error) {
	v.held, err = v.exec(ctx, "sh", "-c", visitScript, "sh", v.dir)
	return err
}

// Dial opens a wire to the guest.
func (v *Visit) Dial(ctx context.Context) (net.Conn, error) {
	return v.exec(ctx, v.dir+"/guest", "pass", "--trust-uid", "--socket", v.dir+"/s")
}

// exec starts a program as the container's user and takes its streams.
func (v *Visit) exec(ctx context.Context, argv ...string) (net.Conn, error) {
	return v.runtime.execIn(ctx, v.id, argv)
}

// Close ends the guest, and everything that it started.
func (v *Visit) Close() error {
	if half, ok := v.held.(*attached).Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = v.held.SetReadDeadline(time.Now().Add(visitPatience))
		_, _ = io.Copy(io.Discard, v.held) // until it has cleared up
	}
	return v.held.Close()
}
