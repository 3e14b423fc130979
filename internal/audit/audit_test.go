package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/audit"
)

func TestMain(m *testing.M) {
	if isChild() {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string, o audit.Options) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// paid is a record that no pace holds back.
func paid(id string) *audit.ModelRequest {
	return &audit.ModelRequest{Time: time.Now(), RequestID: id, Subject: audit.Subject{Account: "a", Run: "r"},
		Dialect: "chat", ModelAsked: "m", Status: 200, Tokens: audit.Tokens{Input: 10, Output: 2}, CostMicroUSD: 30}
}

// write makes a segment of so many records.
func write(t *testing.T, dir string, records int) {
	t.Helper()
	l := open(t, dir, audit.Options{})
	for i := range records {
		if err := l.Append(paid(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func verify(t *testing.T, dir string, o audit.VerifyOptions) *audit.Report {
	t.Helper()
	report, err := audit.Verify(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func sound(t *testing.T, dir string) *audit.Report {
	t.Helper()
	report := verify(t, dir, audit.VerifyOptions{})
	for _, p := range report.Problems {
		t.Error(p)
	}
	return report
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.audit"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func TestRecordsAreKept(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		write(t, dir, 600)
	}
	report := sound(t, dir)
	if report.Records != 1800 || report.Segments != 3 || report.Unsigned != 0 {
		t.Errorf("%+v", report)
	}
	last, err := audit.Tail(dir, 5, nil)
	if err != nil || len(last) != 5 {
		t.Fatalf("%d entries, %v", len(last), err)
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(last[4].JSON), &record); err != nil || record["id"] != "599" || record["costMicroUSD"] != 30.0 {
		t.Errorf("%s, %v", last[4].JSON, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info.Mode(), err)
	}
}

func TestALogWithoutRecordsMakesNoSegment(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 0)
	if got := segments(t, dir); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestWritersShareADirectory(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			l, err := audit.Open(dir, audit.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 200 {
				if err := l.Append(paid(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if report := sound(t, dir); report.Records != 1600 || report.Segments != 8 {
		t.Errorf("%+v", report)
	}
}

// Every change of the files is found.
func TestVerifyFindsEveryChange(t *testing.T) {
	middle := func(t *testing.T, dir string) string { return segments(t, dir)[1] }
	edit := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			path := middle(t, dir)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, change(bytes.Clone(content)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines := func(change func([][]byte) [][]byte) func(*testing.T, string) {
		return edit(func(b []byte) []byte { return bytes.Join(change(bytes.SplitAfter(b, []byte{'\n'})), nil) })
	}
	for name, damage := range map[string]func(*testing.T, string){
		"a figure": edit(func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"costMicroUSD":30`), []byte(`"costMicroUSD":31`), 1)
		}),
		"a bit": edit(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }),
		"a line out": lines(func(l [][]byte) [][]byte {
			return append(l[:20:20], l[21:]...)
		}),
		"a line twice":      lines(func(l [][]byte) [][]byte { return append(l[:20:20], l[19:]...) }),
		"two lines swapped": lines(func(l [][]byte) [][]byte { l[20], l[21] = l[21], l[20]; return l }),
		"the first line":    lines(func(l [][]byte) [][]byte { return l[1:] }),
		"the last line":     lines(func(l [][]byte) [][]byte { return l[:len(l)-2] }),
		"half of it":        edit(func(b []byte) []byte { return b[:len(b)/2] }),
		"all of it":         edit(func([]byte) []byte { return nil }),
		"a tail":            edit(func(b []byte) []byte { return append(b, "more"...) }),
		"a line after the end": edit(func(b []byte) []byte {
			return append(b, b[bytes.LastIndexByte(b[:len(b)-1], '\n')+1:]...)
		}),
		"a segment gone": func(t *testing.T, dir string) { _ = os.Remove(middle(t, dir)) },
		"a segment and its head gone": func(t *testing.T, dir string) {
			path := middle(t, dir)
			_ = os.Remove(path)
			_ = os.Remove(strings.TrimSuffix(path, ".audit") + ".head")
		},
		"a segment renamed": func(t *testing.T, dir string) { _ = os.Rename(middle(t, dir), filepath.Join(dir, "20000101-X.audit")) },
		"a segment copied": func(t *testing.T, dir string) {
			content, _ := os.ReadFile(middle(t, dir))
			_ = os.WriteFile(filepath.Join(dir, "20000101-X.audit"), content, 0o600)
		},
		"the last segment cut": func(t *testing.T, dir string) {
			path := segments(t, dir)[2]
			content, _ := os.ReadFile(path)
			_ = os.WriteFile(path, bytes.Join(bytes.SplitAfter(content, []byte{'\n'})[:10], nil), 0o600)
		},
		"the last segment gone": func(t *testing.T, dir string) { _ = os.Remove(segments(t, dir)[2]) },
		"a head forged": func(t *testing.T, dir string) {
			path := strings.TrimSuffix(middle(t, dir), ".audit") + ".head"
			content, _ := os.ReadFile(path)
			_ = os.WriteFile(path, bytes.Replace(content, []byte(`"lines":`), []byte(`"lines":1`), 1), 0o600)
		},
		"another key": func(t *testing.T, dir string) {
			_ = os.Remove(filepath.Join(dir, "key"))
			write(t, dir, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for range 3 {
				write(t, dir, 300)
			}
			sound(t, dir)
			damage(t, dir)
			if report := verify(t, dir, audit.VerifyOptions{}); len(report.Problems) == 0 {
				t.Errorf("nothing was found: %+v", report)
			}
		})
	}
}

// A removal that no file in the directory shows is found with a head kept elsewhere.
func TestAnAnchorFindsWhatTheDirectoryCannot(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 10)
	write(t, dir, 10)
	anchors := sound(t, dir).Heads
	last := segments(t, dir)[1]
	_ = os.Remove(last)
	_ = os.Remove(strings.TrimSuffix(last, ".audit") + ".head")
	if report := verify(t, dir, audit.VerifyOptions{}); len(report.Problems) != 0 {
		t.Errorf("the docs say that this cannot be found: %v", report.Problems)
	}
	if report := verify(t, dir, audit.VerifyOptions{Anchors: anchors}); len(report.Problems) == 0 {
		t.Error("the anchor did not find it")
	}
}

func TestTextsAreBoundedAndRedacted(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	l.AddScrubber(func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") })
	r := paid("x")
	r.ModelAsked = "m\n{\"kind\":\"close\"}\x1b[31m\u202e\xff" + strings.Repeat("M", 1<<20)
	r.ModelAnswered = "sk-abcdefghijklmnopqrstuvwx"
	r.Denied = "the key hunter2 and Bearer abcdefghijklmnopqrstuv"
	if err := l.Append(r); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(segments(t, dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"hunter2", "sk-abc", "abcdefghijk", "\x1b", "\u202e", strings.Repeat("M", 300)} {
		if bytes.Contains(content, []byte(bad)) {
			t.Errorf("%q is in the log", bad)
		}
	}
	if report := sound(t, dir); report.Records != 1 {
		t.Errorf("%d records, want one line", report.Records)
	}
}

// A hostile caller cannot fill the disk with refusals, nor hide another's.
func TestRefusalsArePaced(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{FreeRate: 0.001, FreeBurst: 20})
	refusal := func(run string) *audit.ModelRequest {
		return &audit.ModelRequest{Time: time.Now(), Subject: audit.Subject{Run: run}, Status: 403, Denied: "no grant"}
	}
	for range 5000 {
		if err := l.Append(refusal("hostile")); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Append(refusal("honest")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if report := sound(t, dir); report.Records != 21 || report.Dropped != 4980 {
		t.Errorf("%d records and %d dropped, want 21 and 4980", report.Records, report.Dropped)
	}
}

func TestSegmentsRollAndRetire(t *testing.T) {
	dir := t.TempDir()
	o := audit.Options{SegmentSize: 20 << 10, KeepSize: 100 << 10, QueueBytes: 4 << 10}
	for range 3 {
		l := open(t, dir, o)
		for i := range 700 {
			if err := l.Append(paid(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	report := sound(t, dir)
	var size int64
	for _, path := range segments(t, dir) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if report.Retired == 0 || size > 150<<10 {
		t.Errorf("%d bytes in %d segments, %d retired", size, report.Segments, report.Retired)
	}
	// One taken by hand is still missed.
	_ = os.Remove(segments(t, dir)[1])
	write(t, dir, 1)
	if report := verify(t, dir, audit.VerifyOptions{}); len(report.Problems) == 0 {
		t.Error("a segment taken by hand was not missed")
	}
}

func TestALogThatCannotBeWrittenFailsClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l, err := audit.Open(dir, audit.Options{QueueBytes: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for err == nil && time.Now().Before(deadline) {
		err = l.Append(paid("x"))
	}
	if !errors.Is(err, audit.ErrFailing) || l.Healthy() == nil {
		t.Errorf("%v, want ErrFailing", err)
	}
	if err := l.Close(); err == nil {
		t.Error("closed as if all were well")
	}
	if err := l.Append(paid("x")); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAKeyOpenToOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1)
	if err := os.Chmod(filepath.Join(dir, "key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(dir, audit.Options{}); err == nil {
		t.Error("accepted")
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := audit.Open(b.TempDir(), audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	r := paid("0123456789abcdef")
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestShortLivedWritersDoNotPileUp(t *testing.T) {
	dir := t.TempDir()
	for range 8 {
		l := open(t, dir, audit.Options{KeepCount: 3})
		if err := l.Append(paid("x")); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if report := sound(t, dir); report.Segments > 3 {
		t.Errorf("%d segments", report.Segments)
	}
}

// A text of a record cannot make a control line of it, whatever it holds.
func TestControlLinesCannotBeForged(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{})
	for _, kind := range []string{"segment", "checkpoint", "close", "retire", "dropped"} {
		r := paid("x")
		r.Subject = audit.Subject{Account: `","kind":"` + kind + `"`}
		if err := errors.Join(l.Append(r), l.Append(&audit.GitEvent{Step: `","kind":"` + kind + `"`})); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if report := sound(t, dir); report.Records != 10 {
		t.Errorf("%d records", report.Records)
	}
}

// What a killed writer left unfinished is removed when it is old; what another
// writer may be about to finish is not.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1)
	old, young := filepath.Join(dir, "old.audit.new"), filepath.Join(dir, "young.head.new")
	for _, path := range []string{old, young} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-61 * time.Minute)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	write(t, dir, 1)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young one: %v", err)
	}
	if report, err := audit.Verify(dir, audit.VerifyOptions{}); err != nil || report.Records != 2 || len(report.Problems) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
