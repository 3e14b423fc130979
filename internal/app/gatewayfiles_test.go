package app_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
)

// read returns what is read, and closes it.
func readAll(t *testing.T, r io.ReadCloser, err error) string {
	t.Helper()
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// Files of a sandbox are listed, described, moved, removed, watched and copied as
// archives.
func TestGatewayFiles(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	ctx := t.Context()
	box, err := g.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if _, err := g.WriteFile(ctx, box.ID, api.WriteFileQuery{Path: path}, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	write("dir/a", "alpha")
	write("dir/b", "0123456789")
	if list, err := g.ListFiles(ctx, box.ID, api.ListFilesQuery{Path: "dir", Limit: 1}); err != nil || len(list.Files) != 1 || list.Files[0].Name != "a" || list.Files[0].Path != "/workspace/dir/a" || !list.More {
		t.Errorf("%+v, %v", list, err)
	}
	for part, want := range map[string]string{"bytes=2-4": "234", "bytes=7-": "789", "bytes=-2": "89", "bytes=8-100": "89"} {
		file, err := g.ReadFileRange(ctx, box.ID, "dir/b", part)
		if got := readAll(t, file, err); got != want {
			t.Errorf("%s: %q", part, got)
		}
	}
	for _, part := range []string{"bytes=10-", "bytes=1-2,4-5", "lines=1-2", "bytes=5-2", "bytes=--1", "bytes=-0"} {
		if _, err := g.ReadFileRange(ctx, box.ID, "dir/b", part); !isProblem(err, "invalid_range") {
			t.Errorf("%s: %v", part, err)
		}
	}
	if moved, err := g.MoveFile(ctx, box.ID, &api.MoveFile{From: "dir/a", To: "other/c"}); err != nil || moved.Path != "/workspace/other/c" || moved.Kind != "file" || moved.Size != 5 {
		t.Errorf("%+v, %v", moved, err)
	}
	if _, err := g.MoveFile(ctx, box.ID, &api.MoveFile{From: "dir/b", To: "other/c", Exclusive: true}); !isProblem(err, "file_exists") {
		t.Errorf("%v", err)
	}
	if made, err := g.MakeDirectory(ctx, box.ID, &api.MakeDirectory{Path: "x/y/z"}); err != nil || made.Kind != "dir" {
		t.Errorf("%+v, %v", made, err)
	}
	if _, err := g.RemoveFile(ctx, box.ID, api.RemoveFileQuery{Path: "x"}); !isProblem(err, "directory_not_empty") {
		t.Errorf("%v", err)
	}
	if gone, err := g.RemoveFile(ctx, box.ID, api.RemoveFileQuery{Path: "x", Recursive: true}); err != nil || gone.Dirs != 3 {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := g.StatFile(ctx, box.ID, "x"); !isProblem(err, "file_not_found") {
		t.Errorf("%v", err)
	}
	archive, err := g.ReadArchive(ctx, box.ID, ".")
	text := readAll(t, archive, err)
	if totals, err := g.WriteArchive(ctx, box.ID, "/tmp/copy", strings.NewReader(text)); err != nil || totals.Files != 2 {
		t.Errorf("%+v, %v", totals, err)
	}
	file, err := g.ReadFile(ctx, box.ID, "/tmp/copy/workspace/other/c")
	if got := readAll(t, file, err); got != "alpha" {
		t.Errorf("%q", got)
	}
}

// A watcher sees what changes, without the names that files have in passing.
func TestGatewayWatch(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	var seen []string
	err = g.WatchFiles(t.Context(), box.ID, api.WatchQuery{Path: "/workspace"}, func(change *api.FileChange) error {
		switch {
		case change == nil:
			_, err := g.WriteFile(t.Context(), box.ID, api.WriteFileQuery{Path: "new"}, strings.NewReader("x"))
			return err
		case change.Path == "/workspace/new":
			return enough
		}
		seen = append(seen, change.Path)
		return nil
	})
	if !errors.Is(err, enough) || len(seen) != 0 {
		t.Errorf("%v, %v", err, seen)
	}
}

// Paths, archives and bodies are hostile: nothing outside is reached, and each has its
// own answer.
func TestGatewayFilesHostile(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	ctx := t.Context()
	box, err := g.CreateSandbox(ctx, &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Exec(ctx, box.ID, shell("ln -s /etc/passwd link; mkfifo pipe; mkdir dir; touch dir/x; ln dir/x hard")); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{
		"link": "path_is_link", "pipe": "path_is_special", "hard": "path_is_link", "dir": "path_is_directory", "dir/x/y": "path_not_directory",
		"/proc/self/environ": "path_is_mount", "": "invalid_request", strings.Repeat("a/", 3000): "invalid_request", "../../etc/no-such-file": "file_not_found",
	} {
		if _, err := g.ReadFile(ctx, box.ID, path); !isProblem(err, code) {
			t.Errorf("read %.20q: %v", path, err)
		}
	}
	for path, code := range map[string]string{"/etc/x": "path_read_only", "link": "path_is_link", "/proc/x": "path_read_only", "dir": "path_is_directory"} {
		if _, err := g.WriteFile(ctx, box.ID, api.WriteFileQuery{Path: path}, strings.NewReader("x")); !isProblem(err, code) {
			t.Errorf("write %q: %v", path, err)
		}
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []*tar.Header{
		{Name: "../../escaped", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}, {Name: "/etc/absolute", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
	} {
		if err := errors.Join(w.WriteHeader(h), func() error { _, err := w.Write([]byte("x")); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()
	if totals, err := g.WriteArchive(ctx, box.ID, "in", &archive); err != nil || totals.LeftOut == 0 {
		t.Errorf("%+v, %v", totals, err)
	}
	if _, err := g.WriteArchive(ctx, box.ID, "in", strings.NewReader(strings.Repeat("no archive at all ", 100))); !isProblem(err, "invalid_archive") {
		t.Errorf("%v", err)
	}
	if result, err := g.Exec(ctx, box.ID, shell("ls -d /escaped /etc/absolute /workspace/escaped; exit 0")); err != nil || result.Stdout != "" {
		t.Errorf("%+v, %v", result, err)
	}
}
