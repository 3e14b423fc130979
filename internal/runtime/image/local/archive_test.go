package local

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func archiveOf(t *testing.T, headers ...tar.Header) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range headers {
		h.Mode = 0o4755
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len("content"))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(w, "content")
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func namesIn(t *testing.T, archive io.Reader) (names []string) {
	t.Helper()
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode&0o6000 != 0 || h.Uid != 0 || !h.ModTime.Equal(epoch) {
			t.Errorf("%+v", h)
		}
		names = append(names, h.Name+">"+h.Linkname)
	}
}

// What a sandbox wrote is below the prefix, with links beside it.
func TestPlace(t *testing.T) {
	in := archiveOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "./"}, tar.Header{Typeflag: tar.TypeDir, Name: "./bin/"}, tar.Header{Typeflag: tar.TypeReg, Name: "./bin/tool"},
		tar.Header{Typeflag: tar.TypeLink, Name: "./bin/again", Linkname: "./bin/tool"}, tar.Header{Typeflag: tar.TypeSymlink, Name: "./bin/soft", Linkname: "../x"})
	var out bytes.Buffer
	if err := place(&out, in, "opt/x", []extra{{name: "usr/local/bin/tool", to: "/opt/x/bin/tool"}, {name: "etc/text", text: "words"}}); err != nil {
		t.Fatal(err)
	}
	want := "opt/> opt/x/> opt/x/bin/> opt/x/bin/tool> opt/x/bin/again>opt/x/bin/tool opt/x/bin/soft>../x usr/> usr/local/> usr/local/bin/> usr/local/bin/tool>/opt/x/bin/tool etc/> etc/text>"
	if got := strings.Join(namesIn(t, &out), " "); got != want {
		t.Errorf("got %s", got)
	}
}

// Names that lead out of the directory, and an archive whose writer failed after its
// end mark, are refused.
func TestPlaceRefuses(t *testing.T) {
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeReg, Name: "../out"}, {Typeflag: tar.TypeReg, Name: "/etc/passwd"}, {Typeflag: tar.TypeReg, Name: "a/../../out"},
		{Typeflag: tar.TypeLink, Name: "hard", Linkname: "../../etc/shadow"}, {Typeflag: tar.TypeLink, Name: "hard", Linkname: "/etc/shadow"},
	} {
		if err := place(io.Discard, archiveOf(t, h), "opt/x", nil); !errors.Is(err, errOutside) {
			t.Errorf("%s %s: %v", h.Name, h.Linkname, err)
		}
	}
	failed := errors.New("the script failed")
	late := io.MultiReader(archiveOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a"}), readerFunc(func([]byte) (int, error) { return 0, failed }))
	if err := place(io.Discard, late, "opt/x", nil); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
