// Package leaks finds secrets in what an agent wrote. The work is done by a
// program of its own (scanner/), confined, on several cores; this package embeds
// it, runs it and checks its answers.
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
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
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

// Found is what one text holds.
type Found struct {
	Text  int // how many were given before it
	Leaks []Leak
}

// The bounds of a scan.
const (
	maxAnswer  = 64 << 10
	maxMemory  = 4 << 30 // address space, of which Go takes much and uses little
	maxCPU     = 10 * time.Minute
	maxWorkers = 4
)

// MaxFound is how many texts with leaks a scanner reports at most.
const MaxFound = 1000

// Scanner is a running scanner. It scans texts while others are added and reports
// at the end. Its methods are called by one goroutine.
type Scanner struct {
	pipe    *io.PipeWriter
	texts   *bufio.Writer
	given   int
	cancel  context.CancelFunc
	ended   chan error
	known   []secret
	found   []Found // of the known secrets
	answers chan scanAnswers
}

// scanAnswers is all answers of a scanner.
type scanAnswers struct {
	answers int
	found   []Found
	err     error
}

// Start starts a scanner. The known secrets, those of the host, are looked for
// as they are, beside what the rules describe.
func Start(ctx context.Context, known ...[]byte) (*Scanner, error) {
	program, err := programFile()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	in, texts := io.Pipe()
	out, answers := io.Pipe()
	s := &Scanner{pipe: texts, texts: bufio.NewWriterSize(texts, maxAnswer), cancel: cancel, ended: make(chan error, 1), known: encodings(known), answers: make(chan scanAnswers, 1)}
	go func() {
		err := confined.Run(ctx, &confined.Program{
			Path: fmt.Sprintf("/proc/self/fd/%d", program.Fd()), Env: environment(),
			Stdin: in, Stdout: answers, Limits: confined.Limits{Memory: maxMemory, CPU: maxCPU, File: 1},
		})
		ended := errors.Join(err, program.Close())
		_ = in.CloseWithError(io.ErrClosedPipe) // never fails
		_ = answers.CloseWithError(io.EOF)      // never fails
		s.ended <- ended
	}()
	go func() {
		all := readAnswers(bufio.NewReaderSize(out, maxAnswer))
		_ = out.CloseWithError(io.ErrClosedPipe) // never fails; it ends a scanner whose answers are not read
		s.answers <- all
	}()
	return s, nil
}

func environment() []string {
	return []string{"GOMEMLIMIT=1GiB", fmt.Sprintf("GOMAXPROCS=%d", min(runtime.NumCPU(), maxWorkers))}
}

// programFile returns the program in sealed memory, executable and unchangeable.
func programFile() (*os.File, error) {
	program, err := programs.ReadFile("bin/atoll-leaks-linux-" + runtime.GOARCH)
	if err != nil {
		return nil, errhint.With(ErrMissing, "build Atoll with: make build")
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

// Scan adds a text.
func (s *Scanner) Scan(text []byte) error {
	if known := s.findKnown(text); len(known) > 0 && len(s.found) < MaxFound {
		s.found = append(s.found, Found{s.given, known})
	}
	s.given++
	if _, err := fmt.Fprintf(s.texts, "%d\n", len(text)); err != nil {
		return s.fail()
	}
	if _, err := s.texts.Write(text); err != nil {
		return s.fail()
	}
	return nil
}

// Finish waits until every text was scanned, ends the scanner and returns what was
// found, in the order of the texts. It fails if a text was not scanned.
func (s *Scanner) Finish() ([]Found, error) {
	if err := s.texts.Flush(); err != nil {
		return nil, s.fail()
	}
	_ = s.pipe.Close() // never fails
	all, ended := <-s.answers, <-s.ended
	s.answers <- all
	s.ended <- ended
	s.cancel()
	switch {
	case all.err != nil:
		return nil, fmt.Errorf("the scanner for secrets answered nonsense: %w", all.err)
	case ended != nil || all.answers != s.given:
		return nil, s.fail()
	}
	found := append(s.found, all.found...)
	slices.SortStableFunc(found, func(a, b Found) int { return a.Text - b.Text })
	return found, nil
}

// readAnswers reads all answers.
func readAnswers(from *bufio.Reader) (all scanAnswers) {
	for {
		line, err := from.ReadSlice('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return all
		}
		if err != nil {
			all.err = err
			return all
		}
		if string(line) != "[]\n" {
			var leaks []Leak
			if all.err = json.Unmarshal(line, &leaks); all.err != nil {
				return all
			}
			if len(all.found) < MaxFound {
				all.found = append(all.found, Found{all.answers, leaks})
			}
		}
		all.answers++
	}
}

// fail ends a broken scanner and returns why it broke.
func (s *Scanner) fail() error {
	s.Stop()
	err := <-s.ended
	s.ended <- err
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the scanner for secrets ended: %w", err)
}

// Stop kills the scanner. It does nothing if the scanner has ended.
func (s *Scanner) Stop() {
	s.cancel()
	_ = s.pipe.CloseWithError(io.ErrClosedPipe) // never fails
	all, ended := <-s.answers, <-s.ended
	s.answers <- all
	s.ended <- ended
}
