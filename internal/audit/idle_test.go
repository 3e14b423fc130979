package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
)

// TestTheWriterRestsAndWakes writes without a pause, so that the writer never
// rests and has to sign all the same, and then now and then, so that it rests and
// has to be roused each time.
func TestTheWriterRestsAndWakes(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{SyncEvery: 50 * time.Millisecond})
	deadline := time.Now().Add(time.Minute)
	written := func() []byte {
		var all []byte
		for _, path := range segments(t, dir) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		return all
	}
	const signature = `"kind":"checkpoint"`
	for n := 0; bytes.Count(written(), []byte(signature)) < 3; n++ {
		if err := l.Append(paid(fmt.Sprint("busy", n))); err != nil || time.Now().After(deadline) {
			t.Fatalf("after %d records: %v", n, err)
		}
		time.Sleep(time.Millisecond)
	}
	for n := range 3 {
		id := fmt.Sprint("rare", n)
		if err := l.Append(paid(id)); err != nil {
			t.Fatal(err)
		}
		for !bytes.Contains(written(), []byte(id)) {
			if time.Now().After(deadline) {
				t.Fatalf("%s was not written", id)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // longer than it stays awake
	}
}
