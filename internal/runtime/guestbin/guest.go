package guestbin

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Guest is a guest program of which the name and the size are known without
// reading it: it has megabytes, and nearly always it is on the disk already.
type Guest struct {
	Hash string // names the content
	Size int64
	body io.ReaderAt
}

// Find returns the guest for an architecture, by Go's name.
func Find(arch string) (*Guest, error) {
	file, err := open(programs, arch)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	body, ok := file.(io.ReaderAt)
	if !ok {
		return nil, fmt.Errorf("guest for %s: %w", arch, errors.ErrUnsupported)
	}
	return New(body, info.Size())
}

// New returns the guest whose program body has.
func New(body io.ReaderAt, size int64) (*Guest, error) {
	g := &Guest{Size: size, body: body}
	if id := buildID(body); len(id) > 0 {
		g.Hash = Hash(fmt.Appendf(id, "%d", size))
		return g, nil
	}
	program, err := g.Read()
	g.Hash = Hash(program)
	return g, err
}

// buildID is what Go's linker writes into a program: a hash of all that is in
// it. Nil if there is none.
func buildID(body io.ReaderAt) []byte {
	program, err := elf.NewFile(body)
	if err != nil {
		return nil
	}
	note := program.Section(".note.go.buildid")
	if note == nil || note.Size > maxNote {
		return nil
	}
	id, err := note.Data()
	if err != nil {
		return nil
	}
	return id
}

// maxNote bounds the note; Go's has 100 bytes.
const maxNote = 4096

// Read returns the program.
func (g *Guest) Read() ([]byte, error) {
	program := make([]byte, g.Size)
	_, err := io.ReadFull(io.NewSectionReader(g.body, 0, g.Size), program)
	return program, err
}

// Hash names a program by its content: the first 16 hexadecimal digits of its
// SHA-256.
func Hash(program []byte) string {
	sum := sha256.Sum256(program)
	return hex.EncodeToString(sum[:8])
}

func open(from fs.FS, arch string) (fs.File, error) {
	if err := known(arch); err != nil {
		return nil, err
	}
	file, err := from.Open(pathFor(arch))
	if err != nil {
		return nil, missing(arch)
	}
	return file, nil
}
