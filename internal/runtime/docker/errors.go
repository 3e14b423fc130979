package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// explain turns an error of the client into one of the domain's kinds where it
// means that the engine is not there; whatever else the engine answered keeps
// its text and its errdefs class, for the caller who knows what was asked.
func (e *engine) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, sandbox.ErrUnavailable), errors.Is(err, sandbox.ErrUnsupported):
		return err
	case isUnreachable(err):
		return errhint.With(fmt.Errorf("%s at %s: %w: %w", e.title(), e.host, sandbox.ErrUnavailable, err), e.reachHint(err))
	}
	return trimmed{err}
}

// isUnreachable covers a connection that could not be made and one that broke
// in the middle of an answer.
func isUnreachable(err error) bool {
	if client.IsErrConnectionFailed(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	_, isNet := errors.AsType[net.Error](err)
	return isNet
}

func (e *engine) title() string {
	if e.flavor == Podman {
		return "Podman"
	}
	return "Docker"
}

func (e *engine) reachHint(err error) string {
	denied := strings.Contains(err.Error(), "permission denied")
	switch {
	case e.flavor == Podman && denied:
		return "run as the user who owns that socket, or use your own: systemctl --user start podman.socket"
	case e.flavor == Podman:
		return "start it with `systemctl start podman.socket` (your own: `systemctl --user start podman.socket`), or name another socket"
	case denied:
		return "add yourself to the docker group (`sudo usermod -aG docker $USER`, then log in again), or run as root"
	}
	return "start it with `systemctl start docker`, or name another socket in DOCKER_HOST"
}

// trimmed is an engine's answer without the client's introduction: our errors
// already say which engine was asked for what.
type trimmed struct{ error }

func (t trimmed) Error() string {
	return strings.TrimPrefix(t.error.Error(), "Error response from daemon: ")
}

func (t trimmed) Unwrap() error { return t.error }

func isNotFound(err error) bool { return errdefs.IsNotFound(err) }
func isConflict(err error) bool { return errdefs.IsConflict(err) }

// couldNotKill reports whether an engine says that a container's processes did not end in the
// time that it waits for them. It has no class of errors for that.
func couldNotKill(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "could not kill")
}

// imageMissing is the error of an image that the engine does not hold. The text
// is what users of OpenClaw know.
type imageMissing struct{ ref string }

func (e imageMissing) Error() string {
	return "Sandbox image not found: " + e.ref + ". Build or pull it first."
}

func (e imageMissing) Is(target error) bool { return target == sandbox.ErrNoImage }

// noImage names the command that would bring the image.
func noImage(ref string) error {
	hint := "pull " + ref + " with the engine's own tool, or name another image in sandbox.docker.image"
	switch repository, _, _ := strings.Cut(ref, ":"); repository {
	case "openclaw-sandbox":
		hint = "atoll images build sandbox"
	case "openclaw-sandbox-common":
		hint = "atoll images build common"
	}
	return errhint.With(imageMissing{ref}, hint)
}
