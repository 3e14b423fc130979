package envd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// maxParts bounds the files of one request.
const maxParts = 1000

// request is one for the content of files.
type request struct {
	*box
	w http.ResponseWriter
	r *http.Request
}

// plain serves a request that is no call.
func (s *Server) plain(serve func(*request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := s.box(r)
		if err == nil {
			err = serve(&request{b, w, r})
		}
		if err != nil {
			f := faultOf(b, err)
			refuse(w, plainStatus(f, err), f.Message)
		}
	}
}

// plainStatus is the status of an answer about a file.
func plainStatus(f *fault, err error) int {
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case errors.Is(err, machine.ErrNoSpace):
		return http.StatusInsufficientStorage
	case errors.Is(err, machine.ErrTooLarge), tooLarge:
		return http.StatusRequestEntityTooLarge
	case f.Code == unavailable:
		return http.StatusBadGateway
	}
	return statuses[f.Code]
}

// readFile answers with the content of a file.
func readFile(q *request) error {
	at, err := q.path(q.r.URL.Query().Get("path"))
	if err != nil {
		return err
	}
	var f *guestfs.FileReader
	err = q.through(q.Ctx, at, true, func(at string) (err error) {
		f, err = q.files.Open(q.Ctx, at, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	q.sendFile(f, path.Base(at))
	return nil
}

// sendFile sends an open file. A reader that takes nothing for too long is left.
func (q *request) sendFile(f *guestfs.FileReader, name string) {
	h := q.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set("Last-Modified", f.Info.ModTime.UTC().Format(http.TimeFormat))
	h.Set("Vary", "Accept-Encoding")
	var err error
	if q.r.Header.Get("Accept-Encoding") == "gzip" { // asked for, beyond what every client names
		h.Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(&pacedWriter{q.w})
		_, err = f.WriteTo(packed)
		err = errors.Join(err, packed.Close())
	} else {
		h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
		_, err = f.WriteTo(&pacedWriter{q.w})
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the reader must not take a part for the whole
	}
}

// pacedWriter is an answer that fails if the reader takes nothing for sendTime.
type pacedWriter struct{ http.ResponseWriter }

func (w *pacedWriter) Write(b []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(sendTime)) // a writer without deadlines is not bounded
	return w.ResponseWriter.Write(b)
}

// writtenFile is a file that was written.
type writtenFile struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Path string `json:"path"`
}

// writeFiles writes the body, or the files of a form, to files.
func writeFiles(q *request) error {
	for name := range q.r.Header {
		if len(name) > len("X-Metadata-") && name[:len("X-Metadata-")] == "X-Metadata-" {
			return &fault{unimplemented, "metadata of files is not kept"}
		}
	}
	body := io.Reader(http.MaxBytesReader(q.w, q.r.Body, sandboxes.MaxFile))
	switch q.r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return &fault{invalidArgument, "the body is not gzip"}
		}
		body = http.MaxBytesReader(q.w, io.NopCloser(unpacked), sandboxes.MaxFile)
	default:
		return &fault{invalidArgument, "Content-Encoding must be gzip"}
	}
	kind, options, _ := mime.ParseMediaType(q.r.Header.Get("Content-Type"))
	var list []*writtenFile
	var err error
	switch kind {
	case "multipart/form-data":
		list, err = q.writeForm(multipart.NewReader(body, options["boundary"]))
	case "application/octet-stream":
		list = make([]*writtenFile, 1)
		list[0], err = q.write(q.r.URL.Query().Get("path"), body)
	default:
		err = &fault{invalidArgument, "Content-Type must be multipart/form-data or application/octet-stream"}
	}
	if err != nil {
		q.w.Header().Set("Connection", "close") // the rest of the body is not read
		return err
	}
	q.w.Header().Set("Content-Type", "application/json")
	return json.MarshalWrite(q.w, list, jsontext.AllowInvalidUTF8(true))
}

// writeForm writes the files of a form: to the path of the request if it has one, else each
// to its own name.
func (q *request) writeForm(form *multipart.Reader) ([]*writtenFile, error) {
	list := []*writtenFile{}
	for {
		part, err := form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil:
			return nil, errors.Join(&fault{invalidArgument, "the form cannot be read"}, err)
		case len(list) == maxParts:
			return nil, &fault{invalidArgument, fmt.Sprintf("a form has at most %d files", maxParts)}
		case part.FormName() != "file":
			continue
		}
		at := q.r.URL.Query().Get("path")
		if at == "" { // the whole name: FileName takes its directories away
			_, options, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
			at = options["filename"]
		}
		written, err := q.write(at, part)
		if err != nil {
			return nil, err
		}
		list = append(list, written)
	}
}

// write writes one file. Others see the old content or the new.
func (q *request) write(given string, content io.Reader) (*writtenFile, error) {
	if given == "" {
		return nil, &fault{invalidArgument, "path is missing"}
	}
	at, err := q.path(given)
	if err != nil {
		return nil, err
	}
	plain := at
	if info, err := q.files.Stat(q.Ctx, at); err != nil && errors.Is(err, machine.ErrSymlink) || err == nil && info.Kind == guestfs.KindSymlink {
		if plain, err = q.real(q.Ctx, at, true); err != nil {
			return nil, err
		}
	}
	if _, err := q.files.WriteFrom(q.Ctx, plain, content, &guestfs.WriteOptions{MkdirAll: true}); err != nil {
		return nil, err
	}
	return &writtenFile{Name: path.Base(at), Type: "file", Path: at}, nil
}
