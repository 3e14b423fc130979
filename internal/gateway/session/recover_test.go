package session_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/store"
)

const childVariable = "ATOLL_TEST_SESSION_CHILD"

func isChild() bool { return os.Getenv(childVariable) != "" }

// child is a process that accepts tasks, has some under way, and says so.
func child() {
	ctx := context.Background()
	db, err := store.Open(ctx, os.Getenv(childVariable))
	if err != nil {
		panic(err)
	}
	h := newHand()
	s := session.New(session.Options{DB: db, Worker: h, Limits: session.Limits{Running: 3}})
	submit := func(key, id, message string) {
		if _, _, err := s.Submit(ctx, ann, session.Task{ID: id, Key: key, Message: message}); err != nil {
			panic(err)
		}
	}
	submit("done", "done", "say done")
	if _, err := s.Wait(ctx, ann, "done"); err != nil {
		panic(err)
	}
	for i := range 3 {
		submit(fmt.Sprint("s", i), fmt.Sprint("under way ", i), "wait never")
	}
	for i := range 6 {
		submit(fmt.Sprint("s", i), fmt.Sprint("queued ", i), "say one")
		submit(fmt.Sprint("s", i), fmt.Sprint("second ", i), "say two")
	}
	for len(h.seen()) < 4 { // until all three are under way
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintln(os.Stdout, "ready")
	select {}
}

// After kill -9 what had not begun is carried out once and in order, what had is
// definitely over, and what was over stays as it is.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "atoll.db")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), childVariable+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if killed := cmd.Process.Kill(); killed != nil {
		t.Error(killed)
	}
	_ = cmd.Wait()
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("%q, %v", line, err)
	}

	d := openAt(t, path, session.Limits{PerSession: 1})
	if err := d.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rec := d.over(ann, "done"); rec.State != session.Done || rec.Text != "done" {
		t.Errorf("done: %+v", rec)
	}
	for i := range 3 {
		if rec := d.over(ann, fmt.Sprint("under way ", i)); rec.State != session.Failed || rec.Code != session.CodeInterrupted || rec.Ended.IsZero() {
			t.Errorf("%+v", rec)
		}
	}
	for i := range 6 {
		for _, id := range []string{"queued ", "second "} {
			if rec := d.over(ann, fmt.Sprint(id, i)); rec.State != session.Done {
				t.Errorf("%+v", rec)
			}
		}
	}
	var ids []string
	for _, job := range d.seen() {
		ids = append(ids, job.ID)
	}
	for i := range 6 {
		first, second := slices.Index(ids, fmt.Sprint("queued ", i)), slices.Index(ids, fmt.Sprint("second ", i))
		if first < 0 || second < first {
			t.Errorf("order %v", ids)
		}
	}
	if len(ids) != 12 {
		t.Errorf("carried out: %v", ids)
	}
	if err := d.Recover(t.Context()); err != nil || len(d.seen()) != 12 {
		t.Errorf("a second time: %d, %v", len(d.seen()), err)
	}
}
