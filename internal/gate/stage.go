package gate

import (
	"crypto/sha1" //nolint:gosec // git's object ids, which protect nothing here
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// stagingName begins the name of a file that is being staged.
const stagingName = "new-"

// stage makes the entry of a change, with the content of a file copied to the stage.
func (c *collection) stage(change *overlay.Change) (*Entry, error) {
	e := &Entry{Path: change.Path, From: change.From, Kind: change.Kind, Mode: change.Mode, OldMode: change.OldMode, Size: change.Size, Link: change.Link}
	if change.Torn {
		e.add("torn", contentpolicy.Blocked, "the host went down while it was being written; `atoll sync accept-torn` takes it as it is")
	}
	if change.Hidden {
		e.add(ruleHidden, contentpolicy.Blocked, "the host's file was hidden from the sandbox")
	}
	switch {
	case change.Kind == overlay.Special || len(change.Path) > c.limits.PathBytes:
		c.refuse(e, change)
	case change.Kind == overlay.Deleted || change.Mode.IsDir():
	case change.Link != "" || change.Mode.Type() != 0:
		e.SHA256 = sumOf([]byte(change.Link))
	default:
		return e, c.stageFile(e)
	}
	return e, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// refuse makes an entry of what cannot be applied.
func (c *collection) refuse(e *Entry, change *overlay.Change) {
	if change.Kind == overlay.Special {
		e.add("special", contentpolicy.Blocked, change.Note)
		return
	}
	e.Path = fmt.Sprintf("%.*s…", c.limits.PathBytes, e.Path)
	e.Kind = overlay.Special
	e.add("path-length", contentpolicy.Blocked, fmt.Sprintf("the path has %d bytes, more than %d", len(change.Path), c.limits.PathBytes))
}

// stageFile copies a file within the limits. One that cannot be read gets a finding.
func (c *collection) stageFile(e *Entry) error {
	file, err := c.opt.Source.Open(e.Path)
	if err != nil {
		e.add("unreadable", contentpolicy.Blocked, "it cannot be read")
		return nil
	}
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		e.add("special", contentpolicy.Blocked, "it is no regular file")
		return nil
	}
	c.noteAttributes(e, file)
	e.Size = st.Size
	if c.tooLarge(e) {
		return nil
	}
	return c.copyToStage(e, file)
}

// noteAttributes says that a file has attributes that give power. They are never taken
// over; an access control list that the host's directory gives to new files is none of
// the agent's.
func (c *collection) noteAttributes(e *Entry, file *os.File) {
	if hasAttribute(file, "security.capability") {
		e.add("attributes", contentpolicy.Approval, "it has file capabilities, which are not taken over")
	}
	if hasAttribute(file, "system.posix_acl_access") && !c.base.givesList(e.Path) {
		e.add("attributes", contentpolicy.Approval, "it has an access control list, which is not taken over")
	}
}

func hasAttribute(file *os.File, name string) bool {
	n, err := unix.Fgetxattr(int(file.Fd()), name, nil)
	return err == nil && n > 0
}

// givesList reports whether the directory of a path has a default access control list.
func (b *baseDir) givesList(rel string) bool {
	dir, _, err := b.parent(rel)
	if err != nil {
		return false
	}
	defer dir.Close()
	return hasAttribute(dir, "system.posix_acl_default")
}

func (c *collection) tooLarge(e *Entry) bool {
	switch {
	case e.Size > c.limits.FileBytes:
		e.add("file-size", contentpolicy.Blocked, fmt.Sprintf("it has %d bytes, more than %d", e.Size, c.limits.FileBytes))
	case c.bytes+e.Size > c.limits.TotalBytes:
		e.add("total-size", contentpolicy.Blocked, fmt.Sprintf("all changed files together have more than %d bytes", c.limits.TotalBytes))
	default:
		return false
	}
	return true
}

// copyToStage copies and hashes a file that may be written to meanwhile: what was
// copied is what counts. It is not synced: what a crash spoils is refused by its hash.
func (c *collection) copyToStage(e *Entry, from io.Reader) error {
	fresh, err := os.CreateTemp(filepath.Join(c.opt.Dir, stageName), stagingName)
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name()) //nolint:errcheck // renamed, or of no use
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(fresh, sum), io.LimitReader(from, c.limits.FileBytes+1))
	if err := errors.Join(err, fresh.Close()); err != nil {
		return err
	}
	c.bytes += size
	if e.Size = size; c.tooLargeNow(e) {
		return nil
	}
	e.SHA256 = hex.EncodeToString(sum.Sum(nil))
	c.testHook("staged one")
	if c.isStaged(e) {
		return nil
	}
	return os.Rename(fresh.Name(), c.stagePath(e.SHA256))
}

// isStaged reports whether an entry is in the stage, undamaged.
func (c *collection) isStaged(e *Entry) bool {
	file, err := os.Open(c.stagePath(e.SHA256))
	if err != nil {
		return false
	}
	defer file.Close()
	return copyHashed(io.Discard, file, e.SHA256) == nil
}

// tooLargeNow is tooLarge for a file that grew while it was copied.
func (c *collection) tooLargeNow(e *Entry) bool {
	if e.Size <= c.limits.FileBytes {
		return false
	}
	e.add("file-size", contentpolicy.Blocked, fmt.Sprintf("it has more than %d bytes", c.limits.FileBytes))
	return true
}

// sweepStage removes what no entry of the set needs.
func (g *Gate) sweepStage(s *Set) error {
	need := map[string]bool{}
	for i := range s.Entries {
		need[s.Entries[i].SHA256] = true
	}
	dir := filepath.Join(g.opt.Dir, stageName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !need[entry.Name()] {
			err = errors.Join(err, os.Remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// staged reads a staged file.
func (g *Gate) staged(sum string) ([]byte, error) {
	file, err := os.Open(g.stagePath(sum))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, g.limits.FileBytes))
}

// readBase reads a file of the base, nil if it is none or larger than limit.
func (b *baseDir) read(rel string, limit int64) ([]byte, error) {
	data, err := hostpath.ReadRegularBeneath(b.root, rel, limit)
	if errors.Is(err, hostpath.ErrHardLink) {
		return b.readLinked(rel, limit)
	}
	return data, err
}

func (b *baseDir) readLinked(rel string, limit int64) ([]byte, error) {
	dir, leaf, err := b.parent(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, st, err := openFile(dir, leaf)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if st.Size > limit {
		return nil, hostpath.ErrTooLarge
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// inCommits reports whether the agent's commits have a file as it is. What cannot be
// read is not in them.
func (c *collection) inCommits(change *overlay.Change) bool {
	switch {
	case c.opt.Committed == nil || change.Kind == overlay.Special:
		return false
	case change.Kind == overlay.Deleted:
		return c.opt.Committed(change.Path, 0, "")
	case change.Mode.Type() == fs.ModeSymlink:
		return c.opt.Committed(change.Path, change.Mode, blobID(int64(len(change.Link)), strings.NewReader(change.Link)))
	case change.Mode.Type() != 0 || change.Size > c.limits.FileBytes:
		return false
	}
	file, err := c.opt.Source.Open(change.Path)
	if err != nil {
		return false
	}
	defer file.Close()
	id := blobID(change.Size, io.LimitReader(file, change.Size+1))
	return id != "" && c.opt.Committed(change.Path, change.Mode, id)
}

// blobID returns the id that git gives a content, "" if it has another size.
func blobID(size int64, from io.Reader) string {
	h := sha1.New() //nolint:gosec // as above
	_, err := fmt.Fprintf(h, "blob %d\x00", size)
	n, copied := io.Copy(h, from)
	if err != nil || copied != nil || n != size {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
