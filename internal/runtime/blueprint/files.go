package blueprint

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxAtOnce is how many descriptors the kernel passes on at once (SCM_MAX_FD).
const maxAtOnce = 253

// SendFiles passes descriptors on to who reads the other end of a socket.
func SendFiles(socket *os.File, files []*os.File) error {
	for len(files) > 0 {
		n := min(len(files), maxAtOnce)
		fds := make([]int, 0, n)
		for _, file := range files[:n] {
			fds = append(fds, int(file.Fd()))
		}
		if err := unix.Sendmsg(int(socket.Fd()), []byte{0}, unix.UnixRights(fds...), nil, 0); err != nil {
			return fmt.Errorf("send files: %w", err)
		}
		files = files[n:]
	}
	return nil
}

var errFiles = errors.New("not as many files came as were announced")

// ReceiveFiles takes that many descriptors. They close themselves on exec.
func ReceiveFiles(socket *os.File, count int) ([]int, error) {
	var all []int
	space := make([]byte, unix.CmsgSpace(4*maxAtOnce))
	for len(all) < count {
		n, oobn, flags, _, err := unix.Recvmsg(int(socket.Fd()), make([]byte, 1), space, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("receive files: %w", err)
		}
		fds, err := rights(space[:oobn])
		if err != nil || n == 0 || len(fds) == 0 || flags&unix.MSG_CTRUNC != 0 {
			return nil, errors.Join(errFiles, err)
		}
		all = append(all, fds...)
	}
	if len(all) != count {
		return nil, errFiles
	}
	return all, nil
}

func rights(space []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(space)
	if err != nil || len(messages) != 1 {
		return nil, err
	}
	return unix.ParseUnixRights(&messages[0])
}
