package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// BridgeStdio connects its standard input and output to process 1, for an engine
// that shares no sockets with the host: the engine starts this program in the
// sandbox and holds its streams. It passes the descriptors and stays until the
// wire ends; for a process 1 that does not take them, it copies the bytes.
func BridgeStdio(ctx context.Context, o *BridgeOptions, in, out *os.File) error {
	conn, err := dialInit(ctx, o)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := passFiles(conn, in, out); err != nil {
		return copyBytes(ctx, o, in, out)
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// BridgeOptions are where the guest listens.
type BridgeOptions struct {
	Socket string
	// TrustUID takes every process of the same user for the guest, where that is
	// not process 1.
	TrustUID bool
}

func copyBytes(ctx context.Context, o *BridgeOptions, in io.Reader, out io.Writer) error {
	conn, err := dialInit(ctx, o)
	if err != nil {
		return err
	}
	defer conn.Close()
	return copyBoth(conn, in, out)
}

// copyBoth copies between a connection and two streams until one of them ends.
func copyBoth(conn net.Conn, in io.Reader, out io.Writer) error {
	// Whichever direction ends first ends both: half a wire is of no use.
	ended := make(chan error, 2)
	for _, direction := range []struct {
		to   io.Writer
		from io.Reader
	}{{conn, in}, {out, conn}} {
		go func() {
			_, err := io.Copy(direction.to, direction.from)
			ended <- err
		}()
	}
	return <-ended
}

// bridgeDialTimeout is how long a process 1 that does not listen yet is waited for.
const bridgeDialTimeout = 10 * time.Second

// dialInit connects to process 1. The socket's directory belongs to hostile
// code, so the peer is checked before a byte is sent.
func dialInit(ctx context.Context, o *BridgeOptions) (*net.UnixConn, error) {
	ctx, cancel := context.WithTimeout(ctx, bridgeDialTimeout)
	defer cancel()
	for {
		conn, err := wire.DialSocket(ctx, o.Socket)
		if err == nil {
			return o.checkPeer(conn)
		}
		if ctx.Err() != nil || errors.Is(err, wire.ErrProtocol) {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
}

// checkPeer returns conn if the guest is its peer, and closes it otherwise.
func (o *BridgeOptions) checkPeer(conn net.Conn) (*net.UnixConn, error) {
	pid, err := wire.PeerPID(conn)
	right := pid == 1
	if o.TrustUID && err == nil {
		err = sameUser(conn)
		right = err == nil
	}
	if local, ok := conn.(*net.UnixConn); ok && err == nil && right {
		return local, nil
	}
	_ = conn.Close()
	return nil, errors.Join(err, fmt.Errorf("process %d listens on %s, not the guest", pid, o.Socket))
}

// checkHostPeer admits only hosts: processes that have no number in the guest's
// pid namespace because they are not in it, and those that an engine started
// inside, which have a number but no parent here. Nothing that began inside can
// lose its parent: process 1 adopts every orphan.
func checkHostPeer(conn net.Conn) error {
	pid, err := wire.PeerPID(conn)
	if err != nil || pid == 0 {
		return err
	}
	parent, err := parentOf(pid)
	if err != nil {
		return err
	}
	if pid == 1 || parent != 0 {
		return fmt.Errorf("process %d of the sandbox itself is not a host", pid)
	}
	return nil
}

// parentOf reads the parent's number out of /proc/<pid>/stat, behind the name,
// which may contain anything.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d: unreadable stat", pid)
	}
	return strconv.Atoi(fields[1])
}
