// Package leaks finds secrets in what an agent wrote. The work is done by a
// program of its own (scanner/), confined; this package embeds it, asks it, and
// believes of its answers what can be so.
package leaks

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/relay/confined"
)

//go:embed bin
var programs embed.FS

// ErrMissing is a scanner that this program was built without.
var ErrMissing = errors.New("the scanner for secrets is not part of this build")

// Leak is a secret that was found. It says where, never what.
type Leak struct {
	Rule string `json:"rule"`
	Line int    `json:"line"` // from 1
}

// The bounds of a scan.
const (
	maxAnswer = 64 << 10
	maxMemory = 4 << 30 // address space, of which Go takes much and uses little
	maxCPU    = 10 * time.Minute
)

// Scanner is a running scanner. Its methods are called by one goroutine.
type Scanner struct {
	texts   *io.PipeWriter
	answers *bufio.Reader
	ended   chan error
	cancel  context.CancelFunc
	known   []secret
}

// Start starts a scanner. The known secrets, those of the host, are looked for
// as they are, beside what the rules describe.
func Start(ctx context.Context, known ...[]byte) (*Scanner, error) {
	program, err := place()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	in, texts := io.Pipe()
	out, answers := io.Pipe()
	s := &Scanner{texts: texts, answers: bufio.NewReaderSize(out, maxAnswer), ended: make(chan error, 1), cancel: cancel, known: disguises(known)}
	go func() {
		err := confined.Run(ctx, &confined.Program{
			Path: fmt.Sprintf("/proc/self/fd/%d", program.Fd()), Env: []string{"GOMEMLIMIT=512MiB", "GOMAXPROCS=1"},
			Stdin: in, Stdout: answers, Limits: confined.Limits{Memory: maxMemory, CPU: maxCPU, File: 1},
		})
		ended := errors.Join(err, program.Close())
		_ = in.CloseWithError(io.ErrClosedPipe) // never fails
		_ = answers.CloseWithError(io.EOF)      // never fails
		s.ended <- ended
	}()
	return s, nil
}

// place puts the program where it can be executed and not be changed.
func place() (*os.File, error) {
	program, err := programs.ReadFile("bin/atoll-leaks-linux-" + runtime.GOARCH)
	if err != nil {
		return nil, advice.With(ErrMissing, "build Atoll with: make build")
	}
	fd, err := unix.MemfdCreate("atoll-leaks", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("place the scanner: %w", err)
	}
	file := os.NewFile(uintptr(fd), "atoll-leaks")
	if _, err := file.Write(program); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Scan looks through one text.
func (s *Scanner) Scan(text []byte) ([]Leak, error) {
	found := s.findKnown(text)
	if _, err := fmt.Fprintf(s.texts, "%d\n", len(text)); err != nil {
		return nil, s.broken()
	}
	if _, err := s.texts.Write(text); err != nil {
		return nil, s.broken()
	}
	line, err := s.answers.ReadSlice('\n')
	if err != nil {
		return nil, s.broken()
	}
	var leaks []Leak
	if err := json.Unmarshal(line, &leaks); err != nil {
		return nil, fmt.Errorf("the scanner for secrets answered nonsense: %w", err)
	}
	return append(found, leaks...), nil
}

// broken says why there is no answer. A text that was not looked through is not
// taken for a clean one.
func (s *Scanner) broken() error {
	s.cancel()
	err := <-s.ended
	s.ended <- err
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the scanner for secrets ended: %w", err)
}

// Close ends the scanner.
func (s *Scanner) Close() error {
	_ = s.texts.Close() // never fails
	err := <-s.ended
	s.cancel()
	s.ended <- err
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
