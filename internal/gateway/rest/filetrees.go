package rest

import (
	"fmt"
	"net/http"
	"path"
	"reflect"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// withFile is a route about one path of the running sandbox.
func withFile[Q, B, A any](pathOf func(*Q, *B) string, do func(f *insideFile, query *Q, body *B) (*A, error)) shape {
	return answers(func(c *call, query *Q, body *B) (*A, error) {
		f, err := c.openFile(pathOf(query, body))
		if err != nil {
			return nil, err
		}
		defer f.close()
		answer, err := do(f, query, body)
		return answer, f.Explain(err)
	})
}

func statFile(f *insideFile, _ *api.FilePath, _ *none) (*api.FileInfo, error) {
	info, err := f.files.Stat(f.Ctx, f.path)
	if err != nil {
		return nil, err
	}
	return sandboxes.InfoOf(info), nil
}

func listFiles(f *insideFile, q *api.ListFilesQuery, _ *none) (*api.Files, error) {
	listing, err := f.files.List(f.Ctx, f.path, &guestfs.ListOptions{After: q.After, Max: q.Limit})
	if err != nil {
		return nil, err
	}
	answer := &api.Files{Files: make([]api.FileEntry, 0, len(listing.Entries)), More: listing.More}
	for i := range listing.Entries {
		e := &listing.Entries[i]
		answer.Files = append(answer.Files, api.FileEntry{Name: e.Path, Path: path.Join(f.path, e.Path), Kind: string(e.Kind), Size: e.Size, Mode: int(e.Mode.Perm()), Modified: e.ModTime.UTC()})
	}
	return answer, nil
}

func removeFile(f *insideFile, q *api.RemoveFileQuery, _ *none) (*api.FileTotals, error) {
	totals, err := f.files.Remove(f.Ctx, f.path, &guestfs.RemoveOptions{Recursive: q.Recursive})
	return totalsOf(&totals), err
}

func moveFile(f *insideFile, _ *none, body *api.MoveFile) (*api.FileInfo, error) {
	if err := checkFilePath("/to", body.To); err != nil {
		return nil, err
	}
	to := f.Path(body.To)
	if err := f.files.Rename(f.Ctx, f.path, to, &guestfs.RenameOptions{NoReplace: body.Exclusive, MkdirAll: true}); err != nil {
		return nil, err
	}
	info, err := f.files.Stat(f.Ctx, to)
	if err != nil {
		return nil, err
	}
	return sandboxes.InfoOf(info), nil
}

func makeDirectory(f *insideFile, _ *none, body *api.MakeDirectory) (*api.FileInfo, error) {
	if err := f.files.Mkdir(f.Ctx, f.path, &guestfs.MkdirOptions{Parents: !body.Exclusive}); err != nil {
		return nil, err
	}
	return statFile(f, nil, nil)
}

func totalsOf(t *guestfs.Totals) *api.FileTotals {
	answer := &api.FileTotals{Files: t.Files, Dirs: t.Dirs, Bytes: t.Bytes, LeftOut: t.Refused}
	for _, r := range t.RefusedNames {
		answer.LeftOutNames = append(answer.LeftOutNames, fmt.Sprintf("%s %v", r.Path, r.Err))
	}
	return answer
}

// readArchive answers with a file or a directory as a tar archive. Links, pipes and
// devices are left out.
func (s *Server) readArchive(c *call, q *api.FilePath, _ *none) error {
	f, err := c.openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.close()
	if _, err := f.files.Stat(f.Ctx, f.path); err != nil {
		return f.Explain(err)
	}
	c.w.Header().Set("Content-Type", archiveType)
	c.w.Header().Set("Content-Disposition", "attachment")
	if _, err := f.files.ReadTar(f.Ctx, f.path, c.pacedWriter(), &guestfs.TarOptions{SkipRefused: true}); err != nil {
		if c.w.status == 0 {
			c.w.Header().Del("Content-Disposition")
			return f.Explain(err)
		}
		panic(http.ErrAbortHandler) // the reader must not take a part for the whole
	}
	return nil
}

// archiveType is the media type of tar archives.
const archiveType = "application/x-tar"

// writeArchive unpacks the body, a tar archive, into a directory.
func (s *Server) writeArchive(c *call, q *api.FilePath, _ *none) (*api.FileTotals, error) {
	f, err := c.openFile(q.Path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	body := http.MaxBytesReader(c.w, c.r.Body, sandboxes.MaxFile)
	totals, err := f.files.WriteTar(f.Ctx, f.path, body, &guestfs.TarOptions{SkipRefused: true, MkdirAll: true})
	if err != nil {
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, f.Explain(bodyProblem(err))
	}
	return totalsOf(&totals), nil
}

// watchEvents are the events of a directory that is watched.
var watchEvents = &eventStream{
	description: "The first event is watching: changes after it are seen. change has a FileChange. The last is problem, with a Problem.",
	data:        []reflect.Type{reflect.TypeFor[api.FileChange]()},
}

// watchFiles sends the changes in a directory until the reader leaves.
func (s *Server) watchFiles(c *call, q *api.WatchQuery, _ *none) error {
	f, err := c.openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.close()
	watcher, err := f.files.Watch(f.Ctx, f.path, &guestfs.WatchOptions{Recursive: q.Recursive})
	if err != nil {
		return f.Explain(err)
	}
	defer watcher.Close()
	events := c.openEvents()
	defer events.close()
	if err := events.send(api.FileWatching, "", &none{}); err != nil {
		return err
	}
	for {
		changes, err := watcher.Next()
		if err != nil {
			return events.fail(f.Explain(err))
		}
		for _, change := range sandboxes.Changes(f.path, changes) {
			if err := events.send(api.FileChanged, "", &change); err != nil {
				return err
			}
		}
	}
}
