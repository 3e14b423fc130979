package tokencache

import (
	"strconv"
	"testing"
	"time"
)

func TestState(t *testing.T) {
	now := time.Unix(1_000, 0)
	before, after := now.Add(-time.Second), now.Add(time.Second)
	for _, test := range []struct {
		name    string
		expires time.Time
		revoked *time.Time
		want    string
	}{
		{"in its time", after, nil, Active},
		{"at its end", now, nil, Expired},
		{"after it", before, nil, Expired},
		{"revoked just now", after, &now, Revoked},
		{"revoked and expired", before, &before, Revoked},
		{"revoked by a clock that is ahead", after, &after, Active},
	} {
		if got := State(now, test.expires, test.revoked); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestRecent(t *testing.T) {
	r := New[string](time.Second)
	at := time.Unix(1_000, 0)
	r.Put("a", "read", at)
	for _, test := range []struct {
		name string
		id   string
		now  time.Time
		want bool
	}{
		{"at once", "a", at, true},
		{"within its life", "a", at.Add(time.Second - 1), true},
		{"after it", "a", at.Add(time.Second), false},
		{"when the clock was set back", "a", at.Add(-time.Hour), false},
		{"another", "b", at, false},
	} {
		if _, ok := r.Get(test.id, test.now); ok != test.want {
			t.Errorf("%s: %v", test.name, ok)
		}
	}
	r.Delete("a")
	if _, ok := r.Get("a", at); ok {
		t.Error("it was forgotten, and is there")
	}
}

func TestRecentIsBounded(t *testing.T) {
	r := New[int](time.Hour)
	for i := range 3 * maxEntries {
		r.Put(strconv.Itoa(i), i, time.Unix(1_000, 0))
		if len(r.kept) > maxEntries {
			t.Fatalf("%d are kept", len(r.kept))
		}
	}
}
