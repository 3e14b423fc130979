package attach_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/session/attach"
)

// What a file is, its content says; limits hold for one file and for all together.
func TestDescribe(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\n")
	files, err := attach.Describe([]attach.Upload{{Name: "notes.exe", Content: []byte("hello")}, {Name: "a.txt", Content: png}})
	if err != nil || files[0].Type != "text/plain; charset=utf-8" || files[1].Type != "image/png" || files[1].Size != int64(len(png)) {
		t.Errorf("%+v, %v", files, err)
	}
	many := make([]attach.Upload, attach.MaxFiles+1)
	for i := range many {
		many[i].Content = []byte("x")
	}
	half := bytes.Repeat([]byte("x"), attach.MaxBytes/2+1)
	for name, wrong := range map[string][]attach.Upload{
		"too many":    many,
		"too large":   {{Content: half}, {Content: half}},
		"empty":       {{Name: "a"}},
		"a long name": {{Name: strings.Repeat("n", 256), Content: png}},
		"no text":     {{Name: "\xff", Content: png}},
	} {
		if _, err := attach.Describe(wrong); !errors.Is(err, attach.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Contents come in base64, alone or in a data URL.
func TestDecode(t *testing.T) {
	for text, want := range map[string]string{"aGk=": "hi", "data:image/png;base64,aGk=": "hi"} {
		if u, err := attach.Decode("a", text); err != nil || string(u.Content) != want {
			t.Errorf("%s: %q, %v", text, u.Content, err)
		}
	}
	for _, text := range []string{"a", "aGk", "not base64!", "data:text/plain,hi"} {
		if _, err := attach.Decode("a", text); !errors.Is(err, attach.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A spool holds so much of an account and of all, and nothing of tasks that are over.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s := attach.NewSpool(dir, 100, 60)
	keep := func(account, id string) error {
		return s.Keep(account, id, []attach.Upload{{Name: "../../x", Content: bytes.Repeat([]byte("x"), 40)}})
	}
	for _, c := range []struct {
		account, id string
		want        error
	}{{"ann", "1", nil}, {"ann", "1", nil}, {"ann", "2", attach.ErrFull}, {"bob", "3", nil}, {"carol", "4", attach.ErrFull}} {
		if err := keep(c.account, c.id); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v, want %v", c.account, c.id, err, c.want)
		}
	}
	if text, err := os.ReadFile(s.Source("1", 0)); err != nil || len(text) != 40 {
		t.Errorf("%q, %v", text, err)
	}
	s.Drop("1")
	if err := keep("carol", "4"); err != nil {
		t.Error(err)
	}
	next := attach.NewSpool(dir, 100, 60)
	next.Adopt("bob", "3", []attach.File{{Size: 40}})
	if err := next.Clean(); err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 || all[0].Name() != "3" {
		t.Errorf("%v, %v", all, err)
	}
}
