package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
)

func execOf(program string) *audit.ExecEvent {
	return &audit.ExecEvent{Time: time.Now(), Subject: audit.Subject{Agent: "main"}, Sandbox: "sbx", Program: program}
}

func pending(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pending"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Pending records are shown at once, and the next writer puts them into the chain,
// each once, also while others are added.
func TestPendingRecordsEnterTheChain(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		if err := audit.AppendPending(dir, execOf(fmt.Sprint("before-", i))); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := audit.Tail(dir, 10, nil); err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	l := open(t, dir, audit.Options{})
	var adding sync.WaitGroup
	for i := range 20 {
		adding.Go(func() {
			if err := audit.AppendPending(dir, execOf(fmt.Sprint("during-", i))); err != nil {
				t.Error(err)
			}
		})
		if err := l.Append(paid(fmt.Sprint("m", i))); err != nil {
			t.Fatal(err)
		}
	}
	adding.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, audit.Options{}).Close(); err != nil { // what came after the last look
		t.Fatal(err)
	}
	if report := sound(t, dir); report.Records != 43 || pending(t, dir) != "" {
		t.Errorf("%d records, pending %q", report.Records, pending(t, dir))
	}
}

// A part of a record, a control line and nonsense do not enter the chain.
func TestPendingNonsenseIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	if err := audit.AppendPending(dir, execOf("true")); err != nil {
		t.Fatal(err)
	}
	more := "nonsense\n\n" + `{"time":"2026-01-01T00:00:00.000Z","kind":"close","sig":"x"}` + "\n" + `{"time":"2026`
	if err := os.WriteFile(filepath.Join(dir, "pending"), []byte(pending(t, dir)+more), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir, audit.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if report := sound(t, dir); report.Records != 1 {
		t.Errorf("%d records", report.Records)
	}
}

// Pending records are bounded: who adds to many puts them into the log.
func TestPendingIsBounded(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 200)
	for range 6000 {
		if err := audit.AppendPending(dir, execOf(long)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(pending(t, dir)); n > 1<<20 {
		t.Errorf("%d bytes wait", n)
	}
	if report := sound(t, dir); report.Records == 0 {
		t.Error("nothing was put into the log")
	}
}

// A link in place of the pending records is not followed.
func TestPendingFollowsNoLink(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.Symlink(other, filepath.Join(dir, "pending")); err != nil {
		t.Fatal(err)
	}
	if err := audit.AppendPending(dir, execOf("true")); err == nil {
		t.Error("appended through a link")
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("the target exists")
	}
}

// Every scrubber counts, however late it is added, until it is removed.
func TestScrubbersAddUp(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	replace := func(secret string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, secret, "[secret]") }
	}
	remove := l.AddScrubber(replace("first-secret"))
	l.AddScrubber(replace("second-secret"))
	for _, after := range []func(){remove, func() {}} {
		if err := l.Append(execOf("first-secret second-secret")); err != nil {
			t.Fatal(err)
		}
		after()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := audit.Tail(dir, 10, nil)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	if !strings.Contains(entries[0].JSON, `"[secret] [secret]"`) || !strings.Contains(entries[1].JSON, `"first-secret [secret]"`) {
		t.Errorf("%v", entries)
	}
}

func BenchmarkAppendPending(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		if err := audit.AppendPending(dir, execOf("true")); err != nil {
			b.Fatal(err)
		}
	}
}
