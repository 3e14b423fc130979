package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/gateway/session/attach"
	"github.com/atoll-run/atoll/internal/store"
)

func openWithFiles(t *testing.T, dir string) *testService {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(dir, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	d := &testService{below: below{newHand()}, t: t}
	d.Service = session.New(session.Options{DB: db, Worker: d.scriptedWorker, Attachments: attach.NewSpool(filepath.Join(dir, "files"), 0, 0)})
	t.Cleanup(func() { _ = db.Close() })
	t.Cleanup(d.Service.Close)
	return d
}

// Files that come with a message are there for its worker, also in the next process,
// and gone when the task is over. The same task again has the same files.
func TestFilesOfATask(t *testing.T) {
	dir := t.TempDir()
	task := func(id, content string) session.Task {
		return session.Task{ID: id, Key: "main", Message: "wait a", Uploads: []attach.Upload{{Name: "a.txt", Content: []byte(content)}}}
	}
	d := openWithFiles(t, dir)
	for _, id := range []string{"one", "two"} {
		if _, _, err := d.Submit(t.Context(), ann, task(id, "hello "+id)); err != nil {
			t.Fatal(err)
		}
	}
	d.began(1)
	job := d.seen()[0]
	if text, err := os.ReadFile(job.Sources[0]); err != nil || string(text) != "hello one" || job.Files[0].Name != "a.txt" {
		t.Errorf("%q, %v, %+v", text, err, job.Files)
	}
	if _, existing, err := d.Submit(t.Context(), ann, task("one", "hello one")); err != nil || !existing {
		t.Errorf("the same again: %v, %v", existing, err)
	}
	if _, _, err := d.Submit(t.Context(), ann, task("one", "other")); !errors.Is(err, session.ErrKeyReused) {
		t.Errorf("other files under the same id: %v", err)
	}
	d.Close()
	again := openWithFiles(t, dir)
	if err := again.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	again.letGo("a")
	again.over(ann, "two")
	if jobs := again.seen(); len(jobs) != 1 || len(jobs[0].Sources) != 1 {
		t.Fatalf("%+v", jobs)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "files")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Without a place for them files are refused.
func TestFilesAreRefused(t *testing.T) {
	d := open(t, session.Limits{})
	_, _, err := d.Submit(t.Context(), ann, session.Task{ID: "a", Key: "main", Uploads: []attach.Upload{{Content: []byte("x")}}})
	if !errors.Is(err, session.ErrInvalid) {
		t.Error(err)
	}
}

// What waits has a bound in bytes, of each account and of all together, which is given
// back when tasks begin or are aborted.
func TestWaitingBytesAreBounded(t *testing.T) {
	d := open(t, session.Limits{AccountBytes: 1000, WaitingBytes: 1500})
	submit := func(v session.View, id string) error {
		_, _, err := d.Submit(t.Context(), v, session.Task{ID: id, Key: "agent:main:main", Message: "wait " + strings.Repeat("x", 595)})
		return err
	}
	d.ask(ann, "agent:main:main", "a0", "wait a")
	d.ask(bob, "agent:main:main", "b0", "wait a")
	d.began(2)
	for _, c := range []struct {
		v    session.View
		id   string
		want error
	}{{ann, "a1", nil}, {ann, "a2", session.ErrBusy}, {bob, "b1", nil}, {session.View{Account: "carol"}, "c1", session.ErrBusy}} {
		if err := submit(c.v, c.id); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.id, err, c.want)
		}
	}
	if _, err := d.Abort(t.Context(), ann, "agent:main:main", "a1"); err != nil {
		t.Fatal(err)
	}
	if err := submit(ann, "a3"); err != nil {
		t.Errorf("after an abort: %v", err)
	}
}
