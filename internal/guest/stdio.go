package guest

import (
	"errors"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// stdio is the guest's side of a process's standard streams: pipes, or the master of a
// terminal.
type stdio struct {
	child [3]int // descriptors of the process; closed once it has them
	null  int    // the one of them that stays open, or -1
	in    *os.File
	pipes []int      // the outputs, until files makes files of them
	out   []*os.File // the outputs
	tty   bool

	writing  sync.Mutex // held while input is written
	owner    int        // number of the last writer, which alone may write
	consumed int64      // bytes of input that were written or dropped
}

// openStdio opens the streams of a request. A process without input gets null, which all
// of them share: /dev/null has no state.
func openStdio(e *wire.Exec, null int) (*stdio, error) {
	s := &stdio{child: [3]int{-1, -1, -1}, null: null, tty: e.TTY != nil}
	err := s.open(e)
	if err != nil {
		s.closeChild()
		s.closeGuest()
		return nil, err
	}
	return s, nil
}

func (s *stdio) open(e *wire.Exec) error {
	if s.tty {
		return s.openTTY(*e.TTY)
	}
	if err := s.openInput(e.Stdin); err != nil {
		return err
	}
	for i := 1; i <= 2; i++ {
		ours, theirs, err := pipe(false)
		if err != nil {
			return err
		}
		s.pipes, s.child[i] = append(s.pipes, ours), theirs
	}
	return nil
}

func (s *stdio) openInput(wanted bool) (err error) {
	if !wanted && s.null >= 0 {
		s.child[0] = s.null
		return nil
	}
	if !wanted {
		s.child[0], err = openNull()
		return err
	}
	ours, theirs, err := pipe(true)
	if err == nil {
		s.in, s.child[0] = os.NewFile(uintptr(ours), "pipe"), theirs
	}
	return err
}

func openNull() (int, error) { return unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0) }

// files returns the outputs as files of the runtime's poller.
func (s *stdio) files() []*os.File {
	for _, fd := range s.pipes {
		s.out = append(s.out, os.NewFile(uintptr(fd), "pipe"))
	}
	s.pipes = nil
	return s.out
}

// pipe opens a pipe of which the guest keeps the writing or the reading end. Only that
// end is non-blocking: programs expect theirs to block.
func pipe(weWrite bool) (ours, theirs int, err error) {
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	ours, theirs = fd[0], fd[1]
	mode := unix.O_RDONLY
	if weWrite {
		ours, theirs = fd[1], fd[0]
		mode = unix.O_WRONLY
	}
	setFlags(ours, mode|unix.O_NONBLOCK)
	return ours, theirs, nil
}

// openTTY opens a terminal. The kernel returns its other side by ioctl, so that nothing
// under /dev/pts is needed or trusted.
func (s *stdio) openTTY(size wire.Size) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return wire.Fail(wire.CodeUnsupported, "the sandbox has no terminals: "+err.Error())
	}
	s.in = os.NewFile(uintptr(master), "terminal")
	s.out = []*os.File{s.in}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	slave, err := openPeer(master)
	if err != nil {
		return err
	}
	s.child = [3]int{slave, slave, slave}
	return s.resize(size)
}

// openPeer opens the slave of a terminal.
func openPeer(master int) (int, error) {
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func (s *stdio) resize(size wire.Size) error {
	if !s.tty {
		return wire.Fail(wire.CodeInvalid, "the process has no terminal")
	}
	conn, err := s.in.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) {
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
}

// takeInput makes the caller the only writer of input, and returns how much was consumed
// before. It interrupts a write of the previous writer.
func (s *stdio) takeInput() (owner int, given int64) {
	if s.in != nil {
		_ = s.in.SetWriteDeadline(time.Unix(1, 0))
		defer func() { _ = s.in.SetWriteDeadline(time.Time{}) }()
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.owner++
	return s.owner, s.consumed
}

// write writes input to the process, and blocks while it does not read. If the process
// has closed its input the bytes are dropped, as in a shell. It returns false if the
// caller is not the writer any more.
func (s *stdio) write(owner int, b []byte) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.owner != owner || s.in == nil {
		return s.owner == owner
	}
	n, err := s.in.Write(b)
	s.consumed += int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	s.consumed += int64(len(b) - n)
	return true
}

// writeFor writes input for at most d, and returns how many bytes were written.
func (s *stdio) writeFor(b []byte, d time.Duration) (int, error) {
	if s.in == nil {
		return 0, wire.Fail(wire.CodeInvalid, "the process has no input")
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_ = s.in.SetWriteDeadline(time.Now().Add(d))
	defer func() { _ = s.in.SetWriteDeadline(time.Time{}) }()
	n, err := s.in.Write(b)
	s.consumed += int64(n)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, wire.Fail(wire.CodeInvalid, "the process does not take input any more")
	}
	return n, nil
}

// endInput ends the input: on a terminal, by writing EOT.
func (s *stdio) endInput(owner int) {
	const endOfTransmission = 4
	switch {
	case s.in == nil:
	case s.tty:
		s.write(owner, []byte{endOfTransmission})
	default:
		s.writing.Lock()
		defer s.writing.Unlock()
		if s.owner == owner {
			_ = s.in.Close()
		}
	}
}

// close closes the input, or the terminal. Pumps close the outputs.
func (s *stdio) close() {
	if s.in != nil {
		_ = s.in.Close()
	}
}

// closePipes closes the outputs, if files was not called.
func (s *stdio) closePipes() {
	for _, fd := range s.pipes {
		closeNow(fd)
	}
	s.pipes = nil
}

func (s *stdio) closeChild() {
	for i, fd := range s.child {
		if fd >= 0 && fd != s.null && (i == 0 || fd != s.child[0]) {
			closeNow(fd)
		}
	}
}

func (s *stdio) closeGuest() {
	s.close()
	s.closePipes()
	for _, file := range s.out {
		_ = file.Close()
	}
}
