package machine_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/google/go-cmp/cmp"
)

// entries reads an archive: names with a digest of what is there.
func entries(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	found := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		check(t, err)
		content, err := io.ReadAll(r)
		check(t, err)
		if _, twice := found[h.Name]; twice {
			t.Errorf("%q comes twice", h.Name)
		}
		found[h.Name] = h.FileInfo().Mode().String() + " " + string(content[:min(len(content), 10)])
	}
}

func TestFilesReadTar(t *testing.T) {
	w := newWorkplace(t, "")
	w.put("tree/a", "alpha")
	w.put("tree/sub/big", strings.Repeat("0123456789", 100_000))
	w.put("tree/empty", "")
	check(t, os.Chmod(w.at("tree/a"), 0o751))
	var archive bytes.Buffer
	totals, err := w.files.ReadTar(patience(t), w.at("tree"), &archive, nil)
	check(t, err)
	want := map[string]string{
		"tree/": "drwxr-xr-x ", "tree/a": "-rwxr-x--x alpha", "tree/empty": "-rw-r--r-- ", "tree/sub/": "drwxr-xr-x ", "tree/sub/big": "-rw-r--r-- 0123456789",
	}
	if got := entries(t, archive.Bytes()); !cmp.Equal(got, want) || totals.Files != 3 || totals.Dirs != 2 || totals.Bytes != 1_000_005 {
		t.Errorf("%s\n%+v", cmp.Diff(want, got), totals)
	}
	archive.Reset()
	_, err = w.files.ReadTar(patience(t), w.at("tree/a"), &archive, nil)
	check(t, err)
	if got := entries(t, archive.Bytes()); !cmp.Equal(got, map[string]string{"a": "-rwxr-x--x alpha"}) {
		t.Errorf("%v", got)
	}
	check(t, os.Symlink("/etc", w.at("tree/link")))
	check(t, os.Link(w.at("tree/a"), w.at("tree/hard")))
	_, err = w.files.ReadTar(patience(t), w.at("tree"), io.Discard, nil)
	wantErr(t, err, machine.ErrHardLink)
	archive.Reset()
	totals, err = w.files.ReadTar(patience(t), w.at("tree"), &archive, &guestfs.TarOptions{SkipRefused: true, Exclude: []string{"sub"}})
	check(t, err)
	if got := entries(t, archive.Bytes()); len(got) != 2 || totals.Refused != 3 {
		t.Errorf("%v %+v", got, totals)
	}
	for _, r := range totals.RefusedNames {
		wanted := map[string]error{"a": machine.ErrHardLink, "hard": machine.ErrHardLink, "link": machine.ErrSymlink}[r.Path]
		wantErr(t, r.Err, wanted)
	}
	for _, limits := range []guestfs.ScanLimits{{Bytes: 1000}, {Entries: 2}, {Depth: 1}} {
		_, err = w.files.ReadTar(patience(t), w.at("tree"), io.Discard, &guestfs.TarOptions{SkipRefused: true, Limits: limits})
		wantErr(t, err, machine.ErrTooLarge)
	}
	full := errors.New("full")
	_, err = w.files.ReadTar(patience(t), w.at("tree/sub"), writerFunc(func([]byte) (int, error) { return 0, full }), nil)
	wantErr(t, err, full)
	_, err = w.files.ReadTar(patience(t), w.at("missing"), io.Discard, nil)
	wantErr(t, err, fs.ErrNotExist)
	check(t, w.machine.Ping(patience(t)))
}

// archiveOf makes an archive of headers; files get their size's worth of "x".
func archiveOf(t *testing.T, headers ...*tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		check(t, w.WriteHeader(h))
		_, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size)))
		check(t, err)
	}
	check(t, w.Close())
	return &b
}

func file(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Size: size, Typeflag: tar.TypeReg}
}

func TestFilesWriteTar(t *testing.T) {
	w := newWorkplace(t, "")
	ctx := patience(t)
	when := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	totals, err := w.files.WriteTar(ctx, w.at("new/dir"), archiveOf(t,
		&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		&tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o555},
		&tar.Header{Name: "d/f", Size: 100_000, Typeflag: tar.TypeReg, Mode: 0o755, ModTime: when},
		file("implied/parent/g", 3), file("./dotted", 0),
	), &guestfs.TarOptions{MkdirAll: true})
	check(t, err)
	if totals.Files != 3 || totals.Dirs != 1 || totals.Bytes != 100_003 || w.get("new/dir/implied/parent/g") != "xxx" {
		t.Errorf("%+v", totals)
	}
	if info, _ := os.Stat(w.at("new/dir/d/f")); info.Mode().Perm() != 0o755 || !info.ModTime().Equal(when) {
		t.Errorf("%v %v", info.Mode(), info.ModTime())
	}
	_, err = w.files.WriteTar(ctx, w.at("absent"), archiveOf(t, file("f", 1)), nil)
	wantErr(t, err, fs.ErrNotExist)
	refused := map[string]struct {
		header *tar.Header
		want   error
	}{
		"escape":        {file("../escape", 1), machine.ErrOutside},
		"deep escape":   {file("a/../../escape", 1), machine.ErrOutside},
		"absolute":      {file("/etc/escape", 1), machine.ErrOutside},
		"symlink":       {&tar.Header{Name: "l", Linkname: "/etc", Typeflag: tar.TypeSymlink}, machine.ErrSymlink},
		"hard link":     {&tar.Header{Name: "l", Linkname: "new/dir/d/f", Typeflag: tar.TypeLink}, machine.ErrHardLink},
		"device":        {&tar.Header{Name: "l", Typeflag: tar.TypeChar}, machine.ErrDevice},
		"block device":  {&tar.Header{Name: "l", Typeflag: tar.TypeBlock}, machine.ErrDevice},
		"pipe":          {&tar.Header{Name: "l", Typeflag: tar.TypeFifo}, machine.ErrFIFO},
		"odd":           {&tar.Header{Name: "l", Typeflag: 'V'}, machine.ErrUnsupported},
		"file as a dir": {file("new", 1), machine.ErrIsDir},
	}
	for name, tt := range refused {
		t.Run(name, func(t *testing.T) {
			_, err := w.files.WriteTar(ctx, w.dir, archiveOf(t, tt.header, file("after", 1)), nil)
			wantErr(t, err, tt.want)
			if errors.Is(tt.want, machine.ErrIsDir) {
				return // seen only by the guest, which cannot skip
			}
			totals, err := w.files.WriteTar(ctx, w.dir, archiveOf(t, tt.header, file("after", 1)), &guestfs.TarOptions{SkipRefused: true})
			check(t, err)
			if totals.Refused != 1 || totals.Files != 1 || !errors.Is(totals.RefusedNames[0].Err, tt.want) {
				t.Errorf("%+v", totals)
			}
		})
	}
	if got := w.names("."); !cmp.Equal(got, []string{"after", "new"}) {
		t.Errorf("left: %q", got)
	}
	for name, limits := range map[string]guestfs.ScanLimits{"bytes": {Bytes: 10}, "entries": {Entries: 1}} {
		_, err = w.files.WriteTar(ctx, w.dir, archiveOf(t, file("p", 8), file("q", 8)), &guestfs.TarOptions{Limits: limits})
		if !errors.Is(err, machine.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = w.files.WriteTar(ctx, w.dir, strings.NewReader(strings.Repeat("not an archive ", 100)), nil)
	if err == nil {
		t.Error("what is no archive was unpacked")
	}
	check(t, os.Symlink("/tmp", w.at("link")))
	_, err = w.files.WriteTar(ctx, w.dir, archiveOf(t, file("link/f", 1)), nil)
	wantErr(t, err, machine.ErrSymlink)
	_, err = w.files.WriteTar(ctx, w.at("link"), archiveOf(t, file("f", 1)), nil)
	wantErr(t, err, machine.ErrSymlink)
	check(t, w.machine.Ping(patience(t)))
}

// TestFilesTarRoundTrip brings a tree with odd names out and in again.
func TestFilesTarRoundTrip(t *testing.T) {
	w := newWorkplace(t, "")
	for i, name := range weirdNames {
		w.put("tree/"+name, strings.Repeat(name, i*1000))
	}
	for i := range 500 {
		w.put("tree/many/"+strings.Repeat("f", i%50+1)+string(rune('a'+i%26)), "x")
	}
	var archive bytes.Buffer
	out, err := w.files.ReadTar(patience(t), w.at("tree"), &archive, nil)
	check(t, err)
	first := bytes.Clone(archive.Bytes())
	in, err := w.files.WriteTar(patience(t), w.at("copy"), &archive, &guestfs.TarOptions{MkdirAll: true})
	check(t, err)
	if !cmp.Equal(in, out) {
		t.Errorf("out %+v, in %+v", out, in)
	}
	archive.Reset()
	_, err = w.files.ReadTar(patience(t), w.at("copy/tree"), &archive, nil)
	check(t, err)
	if !cmp.Equal(entries(t, first), entries(t, archive.Bytes())) {
		t.Error(cmp.Diff(entries(t, first), entries(t, archive.Bytes())))
	}
}
