package service

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/actions"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

const (
	// quarantineDir is where files of browsers wait, below the state directory.
	quarantineDir = "quarantine"
	// uploadDir is where copies of the workspace's files lie inside.
	uploadDir = "/tmp/uploads"
	// maxUpload is the largest file that is uploaded.
	maxUpload = 16 << 20
	// maxStaged is how many copies programs that attach may choose; the oldest go.
	maxStaged = 100
	sniffed   = 512
)

// Workspace is the workspace of the session that uses a browser.
type Workspace interface {
	// Put copies a file of the quarantine into the workspace and returns its path there.
	Put(ctx context.Context, quarantine, file, name string) (string, error)
	// Get returns a file of the workspace of at most so many bytes.
	Get(ctx context.Context, path string, most int64) ([]byte, error)
}

// files implements actions.Files.
type files struct {
	session *Session
	to      Workspace
	uploads bool
	most    int64 // bytes of a download
}

// Save implements actions.Files.
func (f *files) Save(ctx context.Context, name string, data []byte) (string, error) {
	held, err := f.quarantine(data)
	if err != nil {
		return "", err
	}
	defer os.Remove(held) //nolint:errcheck // it is empty then, or removed with the next
	return f.to.Put(ctx, filepath.Dir(held), held, name)
}

// quarantine writes bytes to a file that nothing can run.
func (f *files) quarantine(data []byte) (string, error) {
	dir := filepath.Join(f.session.service.Paths.AtollState, quarantineDir, f.session.name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, rand.Text())
	return path, os.WriteFile(path, data, 0o600)
}

// Stage implements actions.Files.
func (f *files) Stage(ctx context.Context, paths []string) (staged []string, err error) {
	if !f.uploads {
		return nil, errhint.With(errors.New("uploads are switched off"), "set sandbox.browser.uploads to true")
	}
	inside, err := f.session.inside(uploadDir)
	if err != nil {
		return nil, err
	}
	for _, name := range paths {
		data, err := f.to.Get(ctx, name, maxUpload)
		if err != nil {
			return nil, err
		}
		at := path.Join(uploadDir, rand.Text(), path.Base(path.Clean("/"+name)))
		if _, err := inside.Write(ctx, at, data, &guestfs.WriteOptions{MkdirAll: true, Mode: 0o644}); err != nil {
			return nil, err
		}
		staged = append(staged, at)
	}
	f.session.addStaged(staged)
	return staged, nil
}

// addStaged notes copies that programs which attach may choose too.
func (r *Session) addStaged(paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.staged = append(r.staged, paths...)
	r.staged = r.staged[max(0, len(r.staged)-maxStaged):]
}

// IsStaged reports whether a path inside the sandbox of a browser that this process has is
// a copy that was put there to be uploaded.
func (s *Service) IsStaged(name, path string) bool {
	s.mu.Lock()
	r := s.open[name]
	s.mu.Unlock()
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.staged, path)
}

// inside returns the files of the browser's sandbox below a directory.
func (r *Session) inside(dir string) (*guestfs.Files, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.box == nil {
		return nil, browser.ErrNone
	}
	return guestfs.New(r.box.Machine, []guestfs.Root{{Path: path.Dir(dir)}})
}

// New implements actions.Files.
func (f *files) New(ctx context.Context) (found []actions.File) {
	r := f.session
	r.mu.Lock()
	b := r.browser
	r.mu.Unlock()
	if b == nil {
		return nil
	}
	ended, _ := b.Downloads().Take(r.taken)
	for _, d := range ended {
		file := f.fetch(ctx, &d)
		r.files = append(r.files, file)
		found = append(found, file)
	}
	return found
}

// All implements actions.Files.
func (f *files) All() []actions.File { return slices.Clone(f.session.files) }

// fetch takes one download out of the sandbox. What the browser says of it is not
// believed: the file is read within its limit and described by its bytes.
func (f *files) fetch(ctx context.Context, d *browser.Download) actions.File {
	file := actions.File{Name: d.Name, Note: d.Why}
	if d.Why != "" {
		return file
	}
	data, err := f.read(ctx, d.ID)
	if err != nil {
		file.Note = fmt.Sprintf("%.200s", err)
		return file
	}
	sum := sha256.Sum256(data)
	file.Bytes, file.SHA256 = int64(len(data)), hex.EncodeToString(sum[:])
	file.Type = http.DetectContentType(data[:min(len(data), sniffed)])
	if isProgram(d.Name, data) {
		file.Note = "programs and scripts are not put into the workspace"
		return file
	}
	if file.Path, err = f.Save(ctx, d.Name, data); err != nil {
		file.Note = fmt.Sprintf("%.200s", err)
	}
	return file
}

// read takes the bytes of a download out of the sandbox and removes it there.
func (f *files) read(ctx context.Context, id string) ([]byte, error) {
	inside, err := f.session.inside(browser.DownloadDir)
	if err != nil {
		return nil, err
	}
	at := path.Join(browser.DownloadDir, id)
	defer inside.Remove(ctx, at, &guestfs.RemoveOptions{Missing: true}) //nolint:errcheck // the sandbox bounds what stays
	in, err := inside.Open(ctx, at, &guestfs.ReadOptions{Limit: f.most + 1})
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was read
	var data bytes.Buffer
	if _, err := in.WriteTo(&data); err != nil {
		return nil, err
	}
	if int64(data.Len()) > f.most {
		return nil, errors.New("it is larger than sandbox.browser.downloads.maxBytes")
	}
	return data.Bytes(), nil
}

// programEndings are those of files that systems run.
var programEndings = []string{".exe", ".com", ".bat", ".cmd", ".ps1", ".vbs", ".scr", ".msi", ".lnk", ".desktop", ".sh", ".app", ".dmg", ".deb", ".rpm", ".jar", ".appimage"}

// isProgram reports whether a file is one that a person could run by mistake.
func isProgram(name string, data []byte) bool {
	for _, begin := range []string{"\x7fELF", "MZ", "#!", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
		if bytes.HasPrefix(data, []byte(begin)) {
			return true
		}
	}
	return slices.Contains(programEndings, strings.ToLower(path.Ext(name)))
}
