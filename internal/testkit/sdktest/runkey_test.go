package sdktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

const curl = `curl -sS --max-time 120 -H 'Content-Type: application/json' -d "$1" http://localhost:8080/v1/chat/completions`

// A run's calls are made with a key of its own, which is limited as the run is
// and ends with it.
func TestAKeyForEachRun(t *testing.T) {
	d := newDesk(t, fixtureOptions{backend: "linux", models: models(), keyPerRun: true})
	g := d.grant("run-1", 500_000, "words", "worker")
	keys := d.upstream.Keys()
	want := []litellmtest.Key{{Alias: "atoll-run-1", Type: "llm_api", Models: []string{"words", "worker"}, MaxBudget: 0.5}}
	if diff := cmp.Diff(want, keys, cmpopts.IgnoreFields(litellmtest.Key{}, "Hash", "Expires")); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if life := time.Until(keys[0].Expires); life < time.Hour || life > 2*time.Hour {
		t.Errorf("the key lives %v, the run an hour", life)
	}
	out := d.exec(g, nil, map[string]string{}, "/bin/sh", "-c", curl, "sh", `{"model":"words","messages":[]}`)
	if rows := d.upstream.Rows(); !strings.Contains(out, "one two three") || len(rows) != 1 || rows[0].APIKey != keys[0].Hash {
		t.Errorf("%s\n%+v", out, rows)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if left := d.upstream.Keys(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if notes, err := os.ReadDir(filepath.Join(d.state, "usage", "keys")); err != nil || len(notes) != 0 {
		t.Errorf("notes %v, %v", notes, err)
	}
}

// What a killed process leaves is a key and a note that nobody locks. The next
// process deletes both; a run that is taken up again does so itself.
func TestKeysOfKilledProcessesAreDeleted(t *testing.T) {
	d := newDesk(t, fixtureOptions{backend: "linux", models: models(), keyPerRun: true})
	d.leaveKey("run-dead")
	d.leaveKey("run-again")
	g := d.grant("run-again", 0, "words")
	again, err := d.app.Models.OpenProxy(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for deadline := time.Now().Add(time.Minute); len(d.upstream.Keys()) != 1 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if left := d.upstream.Keys(); len(left) != 1 || left[0].Alias != "atoll-run-again" || left[0].Hash == "" {
		t.Errorf("left: %v", left)
	}
	if err := g.Close(); err != nil || len(d.upstream.Keys()) != 0 {
		t.Errorf("%v, left: %v", err, d.upstream.Keys())
	}
}
