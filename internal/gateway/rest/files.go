package rest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// insideFile is a path in the files of a sandbox.
type insideFile struct {
	*sandboxes.Inside
	files *guestfs.Files
	path  string
	leave func()
}

func (f *insideFile) close() {
	f.leave()
	f.Leave()
}

// openFile returns a path in the files of the sandbox of the request, and counts it as
// a stream of the caller until it is closed.
func (c *call) openFile(path string) (*insideFile, error) {
	if err := checkFilePath("path", path); err != nil {
		return nil, err
	}
	inside, err := c.enter()
	if err != nil {
		return nil, err
	}
	files, err := inside.Files()
	if err != nil {
		inside.Leave()
		return nil, err
	}
	leave, err := c.openStream()
	if err != nil {
		inside.Leave()
		return nil, err
	}
	return &insideFile{Inside: inside, files: files, path: inside.Path(path), leave: leave}, nil
}

// maxFilePath is the longest path of Linux.
const maxFilePath = 4096

// checkFilePath refuses what is no path.
func checkFilePath(pointer, path string) error {
	if path == "" || len(path) > maxFilePath || strings.ContainsRune(path, 0) {
		return invalid(api.FieldError{Pointer: pointer, Detail: fmt.Sprintf("must be a path of at most %d bytes", maxFilePath)})
	}
	return nil
}

// readFile answers with the content of a file, or with one range of it.
func (s *Server) readFile(c *call, q *api.FilePath, _ *none) error {
	f, err := c.openFile(q.Path)
	if err != nil {
		return err
	}
	defer f.close()
	asked, err := parseRange(c.r.Header.Get("Range"))
	if err != nil {
		return err
	}
	reader, err := f.files.Open(f.Ctx, f.path, &guestfs.ReadOptions{Offset: asked.offset, Limit: asked.limit})
	if err != nil {
		return f.Explain(err)
	}
	defer reader.Close()
	return c.sendFile(reader, asked)
}

// byteRange is a part of a file: all of it if it is zero.
type byteRange struct {
	offset, limit int64 // as in guestfs.ReadOptions
	partial       bool
}

// parseRange reads a Range header with one range of bytes.
func parseRange(header string) (byteRange, error) {
	if header == "" {
		return byteRange{}, nil
	}
	bad := &api.Problem{Status: http.StatusRequestedRangeNotSatisfiable, Code: "invalid_range", Detail: "only one range of bytes can be asked for, such as bytes=0-99"}
	spec, ok := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !ok || !dash {
		return byteRange{}, bad
	}
	from, fromErr := strconv.ParseUint(first, 10, 62)
	to, toErr := strconv.ParseUint(last, 10, 62)
	switch {
	case first == "" && toErr == nil && to > 0:
		return byteRange{offset: -int64(to), partial: true}, nil
	case fromErr == nil && last == "":
		return byteRange{offset: int64(from), partial: true}, nil
	case fromErr == nil && toErr == nil && to >= from:
		return byteRange{offset: int64(from), limit: int64(to-from) + 1, partial: true}, nil
	}
	return byteRange{}, bad
}

// sendFile sends an open file. A reader that takes nothing for too long is closed.
func (c *call) sendFile(f *guestfs.FileReader, asked byteRange) error {
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Accept-Ranges", "bytes")
	h.Set("Last-Modified", f.Info.ModTime.UTC().Format(http.TimeFormat))
	status := http.StatusOK
	if asked.partial {
		if f.Size == 0 {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", f.Info.Size))
			return &api.Problem{Status: http.StatusRequestedRangeNotSatisfiable, Code: "invalid_range", Detail: "the range begins after the end of the file"}
		}
		status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", f.Offset, f.Offset+f.Size-1, f.Info.Size))
	}
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	c.w.WriteHeader(status)
	if _, err := f.WriteTo(c.pacedWriter()); err != nil {
		panic(http.ErrAbortHandler) // the reader must not take a part for the whole
	}
	return nil
}

// pacedWriter returns the answer as a writer that fails if the reader takes nothing
// for Limit.Send.
func (c *call) pacedWriter() io.Writer { return (*timedWriter)(c) }

type timedWriter call

func (w *timedWriter) Write(b []byte) (int, error) {
	c := (*call)(w)
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(c.Limit.Send)) // a writer without deadlines is not bounded
	return c.w.Write(b)
}

// writeFile writes the body to a file. Others see the old content or the new.
func (s *Server) writeFile(c *call, q *api.WriteFileQuery, _ *none) (*api.FileInfo, error) {
	f, err := c.openFile(q.Path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	body := http.MaxBytesReader(c.w, c.r.Body, sandboxes.MaxFile)
	done, err := f.files.WriteFrom(f.Ctx, f.path, body, &guestfs.WriteOptions{Mode: fs.FileMode(q.Mode).Perm(), Exclusive: q.Exclusive, MkdirAll: true})
	if err != nil {
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
		return nil, f.Explain(bodyProblem(err))
	}
	return sandboxes.InfoOf(&done.Info), nil
}

// bodyProblem returns the problem of a body that could not be read to its end, or err.
func bodyProblem(err error) error {
	if over, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &api.Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body has more than %d bytes", over.Limit)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &api.Problem{Status: http.StatusRequestTimeout, Code: "body_too_slow", Detail: "the body arrives too slowly"}
	}
	if errors.Is(err, tar.ErrHeader) {
		return &api.Problem{Status: http.StatusUnprocessableEntity, Code: "invalid_archive", Detail: "the body is no tar archive"}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &api.Problem{Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body could not be read"}
	}
	return err
}
