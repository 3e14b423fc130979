package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// filesPath returns the path of a sandbox's files, and what follows it.
func filesPath(id, after string) string { return pathWith(sandboxes+"/", id, "/files"+after) }

// ReadFile opens a file of a sandbox. The caller closes it.
func (c *Client) ReadFile(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.open(ctx, filesPath(id, ""), path, "")
}

// ReadFileRange opens a part of a file, as a Range header names it: bytes=0-99.
func (c *Client) ReadFileRange(ctx context.Context, id, path, part string) (io.ReadCloser, error) {
	return c.open(ctx, filesPath(id, ""), path, part)
}

// ReadArchive opens a file or directory of a sandbox as a tar archive. The caller
// closes it.
func (c *Client) ReadArchive(ctx context.Context, id, path string) (io.ReadCloser, error) {
	return c.open(ctx, filesPath(id, "/archive"), path, "")
}

func (c *Client) open(ctx context.Context, route, path, part string) (io.ReadCloser, error) {
	response, err := c.send(ctx, &request{method: http.MethodGet, path: route, query: api.FilePath{Path: path}, header: map[string]string{"Accept": "*/*", "Range": part}}) //nolint:bodyclose // the caller closes it
	if err != nil {
		return nil, err
	}
	return download{response.Body}, nil
}

// download is the content of a file or an archive.
type download struct{ io.ReadCloser }

// downloadStep is how much of a download is copied at once.
const downloadStep = 256 << 10

// WriteTo implements io.WriterTo, so that io.Copy takes large steps.
func (d download) WriteTo(w io.Writer) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{d.ReadCloser}, make([]byte, downloadStep))
}

// WriteFile writes a file of a sandbox as a whole. Missing directories are made.
func (c *Client) WriteFile(ctx context.Context, id string, q api.WriteFileQuery, content io.Reader) (*api.FileInfo, error) {
	return ask[api.FileInfo](ctx, c, &request{method: http.MethodPut, path: filesPath(id, ""), query: q, content: content})
}

// WriteArchive unpacks a tar archive into a directory of a sandbox.
func (c *Client) WriteArchive(ctx context.Context, id, path string, archive io.Reader) (*api.FileTotals, error) {
	return ask[api.FileTotals](ctx, c, &request{method: http.MethodPut, path: filesPath(id, "/archive"), query: api.FilePath{Path: path}, content: archive})
}

// StatFile describes a file of a sandbox.
func (c *Client) StatFile(ctx context.Context, id, path string) (*api.FileInfo, error) {
	return get[api.FileInfo](ctx, c, filesPath(id, "/stat"), api.FilePath{Path: path})
}

// ListFiles lists a directory of a sandbox.
func (c *Client) ListFiles(ctx context.Context, id string, q api.ListFilesQuery) (*api.Files, error) {
	return get[api.Files](ctx, c, filesPath(id, "/list"), q)
}

// RemoveFile removes a file or a directory of a sandbox.
func (c *Client) RemoveFile(ctx context.Context, id string, q api.RemoveFileQuery) (*api.FileTotals, error) {
	return ask[api.FileTotals](ctx, c, &request{method: http.MethodDelete, path: filesPath(id, ""), query: q})
}

// MoveFile moves a file or a directory of a sandbox.
func (c *Client) MoveFile(ctx context.Context, id string, q *api.MoveFile) (*api.FileInfo, error) {
	return do[api.FileInfo](ctx, c, http.MethodPost, filesPath(id, "/move"), q)
}

// MakeDirectory makes a directory of a sandbox.
func (c *Client) MakeDirectory(ctx context.Context, id string, q *api.MakeDirectory) (*api.FileInfo, error) {
	return do[api.FileInfo](ctx, c, http.MethodPost, filesPath(id, "/mkdir"), q)
}

// WatchFiles calls tell with the changes in a directory, and before with a nil change
// once they are seen, until ctx ends or tell returns an error.
func (c *Client) WatchFiles(ctx context.Context, id string, q api.WatchQuery, tell func(*api.FileChange) error) error {
	response, err := c.send(ctx, &request{method: http.MethodGet, path: filesPath(id, "/watch"), query: q, header: map[string]string{"Accept": "text/event-stream"}})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return readEvents(response.Body, func(name string, data []byte) error {
		switch name {
		case api.FileWatching:
			return tell(nil)
		case api.FileChanged:
			change := &api.FileChange{}
			if err := json.Unmarshal(data, change); err != nil {
				return err
			}
			return tell(change)
		case api.ExecProblem:
			p := &api.Problem{}
			return errors.Join(json.Unmarshal(data, p), p)
		}
		return nil
	})
}
