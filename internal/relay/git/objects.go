package git

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Object is what is known of an object without reading it.
type Object struct {
	ID   string
	Type string // "" if it is not there
	Size int64  // unpacked
}

// Stat looks objects up, in the order of ids.
func (r *Repo) Stat(ctx context.Context, ids []string) ([]Object, error) {
	out, err := r.Output(ctx, strings.NewReader(lines(ids)), "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	if err != nil {
		return nil, err
	}
	objects := make([]Object, 0, len(ids))
	for line := range strings.Lines(string(out)) {
		object, err := parseObject(line)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	if len(objects) != len(ids) {
		return nil, fmt.Errorf("git cat-file: %d answers to %d questions", len(objects), len(ids))
	}
	return objects, nil
}

func parseObject(line string) (Object, error) {
	fields := strings.Fields(line)
	switch {
	case len(fields) == 2 && fields[1] == "missing":
		return Object{ID: fields[0]}, nil
	case len(fields) != 3:
		return Object{}, fmt.Errorf("git cat-file: cannot read %q", line)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return Object{}, fmt.Errorf("git cat-file: cannot read %q", line)
	}
	return Object{ID: fields[0], Type: fields[1], Size: size}, nil
}

// Each reads objects in the order of ids and gives them to visit, whose data is
// valid until it returns. One larger than limit ends it with an error.
func (r *Repo) Each(ctx context.Context, ids []string, limit int64, visit func(Object, []byte) error) error {
	if len(ids) == 0 {
		return nil
	}
	return r.stream(ctx, lines(ids), func(from *bufio.Reader) error {
		return readObjects(from, len(ids), limit, visit)
	}, "cat-file", "--batch", "--buffer")
}

// stream runs git and reads its output meanwhile. An error of read ends git.
func (r *Repo) stream(ctx context.Context, stdin string, read func(*bufio.Reader) error, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := r.Run(ctx, strings.NewReader(stdin), in, args...)
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	err := read(bufio.NewReaderSize(out, maxField))
	_ = out.CloseWithError(err) // never fails
	if err != nil {
		cancel()
		<-done
		return err
	}
	return <-done
}

func readObjects(from *bufio.Reader, n int, limit int64, visit func(Object, []byte) error) error {
	var data []byte
	for range n {
		line, err := from.ReadString('\n')
		if err != nil {
			return err
		}
		object, err := parseObject(line)
		if err != nil {
			return err
		}
		if object.Type == "" || object.Size > limit {
			return fmt.Errorf("%w: %s is missing, or larger than %d bytes", ErrMalformed, object.ID, limit)
		}
		if int64(cap(data)) < object.Size+1 {
			data = make([]byte, object.Size+1)
		}
		data = data[:object.Size+1]
		if _, err := io.ReadFull(from, data); err != nil { // a line feed follows
			return err
		}
		if err := visit(object, data[:object.Size]); err != nil {
			return err
		}
	}
	return nil
}

// maxCommit is the largest commit that is read.
const maxCommit = 1 << 20

// Commits reads commits, in the order of ids.
func (r *Repo) Commits(ctx context.Context, ids []string) ([]*Commit, error) {
	commits := make([]*Commit, 0, len(ids))
	err := r.Each(ctx, ids, maxCommit, func(o Object, data []byte) error {
		if o.Type != "commit" {
			return fmt.Errorf("%w: %s is a %s, not a commit", ErrMalformed, o.ID, o.Type)
		}
		commit, err := parseCommit(o.ID, data)
		commits = append(commits, commit)
		return err
	})
	return commits, err
}

func lines(ids []string) string {
	return strings.Join(ids, "\n") + "\n"
}
