package overlay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// A manifest file lists a tree: a block of entries for each directory, then the
// table of directories with the place of their blocks, then the place of the
// table. Only the table is read at once; a block is read when it is needed.

const (
	manifestMagic = "atoll-manifest-1"
	maxManifest   = 4 << 30
	maxBlock      = 256 << 20
	trailerSize   = 8 + len(manifestMagic)
)

var errManifest = errors.New("the manifest is damaged")

// entry is what is known of one file, directory or link.
type entry struct {
	Mode  uint32 `json:"mode"` // type and permissions as in stat(2)
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime"`
	Ctime int64  `json:"ctime"`
	Ino   uint64 `json:"ino"`
	Link  string `json:"link,omitempty"`
	Sum   string `json:"sum,omitempty"` // SHA-256 of the content, where times are not enough
}

func entryOf(st *unix.Stat_t) entry {
	return entry{Mode: st.Mode, Size: st.Size, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Ino: st.Ino}
}

func (e entry) isDir() bool     { return e.Mode&unix.S_IFMT == unix.S_IFDIR }
func (e entry) isRegular() bool { return e.Mode&unix.S_IFMT == unix.S_IFREG }
func (e entry) isLink() bool    { return e.Mode&unix.S_IFMT == unix.S_IFLNK }

// dirNote is one directory of a manifest.
type dirNote struct {
	id        hostpath.ID
	at, bytes uint64 // where its block is
}

// manifest is an open manifest file.
type manifest struct {
	file io.ReaderAt
	dirs map[string]dirNote
}

// close closes the file of a manifest that was opened by name.
func (m *manifest) close() {
	if c, ok := m.file.(io.Closer); ok {
		_ = c.Close()
	}
}

// manifestWriter writes a manifest.
type manifestWriter struct {
	out   *bufio.Writer
	at    uint64
	table []byte
	block []byte
}

func newManifestWriter(w io.Writer) *manifestWriter {
	return &manifestWriter{out: bufio.NewWriterSize(w, 1<<20)}
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// add puts an entry into the block of the directory that add is called for.
func (w *manifestWriter) add(name string, e entry) {
	w.block = appendText(w.block, name)
	w.block = binary.AppendUvarint(w.block, uint64(e.Mode))
	w.block = binary.AppendVarint(w.block, e.Size)
	w.block = binary.AppendVarint(w.block, e.Mtime)
	w.block = binary.AppendVarint(w.block, e.Ctime)
	w.block = binary.AppendUvarint(w.block, e.Ino)
	w.block = appendText(appendText(w.block, e.Link), e.Sum)
}

// endDir ends the block of a directory.
func (w *manifestWriter) endDir(path string, id hostpath.ID) error {
	w.table = appendText(w.table, path)
	for _, n := range []uint64{id.Device, id.Inode, w.at, uint64(len(w.block))} {
		w.table = binary.AppendUvarint(w.table, n)
	}
	n, err := w.out.Write(w.block)
	w.at += uint64(n)
	w.block = w.block[:0]
	return err
}

func (w *manifestWriter) finish() error {
	_, err := w.out.Write(w.table)
	trailer := append(binary.BigEndian.AppendUint64(nil, w.at), manifestMagic...)
	_, err2 := w.out.Write(trailer)
	return errors.Join(err, err2, w.out.Flush())
}

// readManifest reads the table of a manifest of the given size.
func readManifest(file io.ReaderAt, size int64) (*manifest, error) {
	if size < int64(trailerSize) || size > maxManifest {
		return nil, errManifest
	}
	trailer := make([]byte, trailerSize)
	if _, err := file.ReadAt(trailer, size-int64(trailerSize)); err != nil {
		return nil, err
	}
	at := binary.BigEndian.Uint64(trailer)
	end := uint64(size) - uint64(trailerSize)
	if string(trailer[8:]) != manifestMagic || at > end {
		return nil, errManifest
	}
	table := make([]byte, end-at)
	if _, err := file.ReadAt(table, int64(at)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m := &manifest{file: file, dirs: map[string]dirNote{}}
	for d := (&decoder{rest: table}); len(d.rest) > 0; {
		path := d.text()
		note := dirNote{hostpath.ID{Device: d.uvarint(), Inode: d.uvarint()}, d.uvarint(), d.uvarint()}
		if d.bad || note.at > at || note.bytes > at-note.at || note.bytes > maxBlock {
			return nil, errManifest
		}
		m.dirs[path] = note
	}
	return m, nil
}

// entries reads the entries of a directory; none if it is not in the manifest.
func (m *manifest) entries(path string) (map[string]entry, error) {
	note, ok := m.dirs[path]
	if !ok {
		return nil, nil
	}
	block := make([]byte, note.bytes)
	if n, err := m.file.ReadAt(block, int64(note.at)); n != len(block) {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	found := map[string]entry{}
	for d := (&decoder{rest: block}); len(d.rest) > 0; {
		name := d.text()
		e := entry{Mode: uint32(d.uvarint()), Size: d.varint(), Mtime: d.varint(), Ctime: d.varint(), Ino: d.uvarint(), Link: d.text(), Sum: d.text()}
		if d.bad {
			return nil, errManifest
		}
		found[name] = e
	}
	return found, nil
}

// decoder reads numbers and texts one after the other. bad is set, and nothing
// is left, once something did not fit.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) fail() { d.bad, d.rest = true, nil }

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return ""
	}
	text := string(d.rest[:n])
	d.rest = d.rest[n:]
	return text
}

// openManifest opens the manifest at path. It stays open as long as it is used.
func openManifest(path string) (*manifest, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var m *manifest
		if m, err = readManifest(file, info.Size()); err == nil {
			return m, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("%q: %w", path, err), file.Close())
}
