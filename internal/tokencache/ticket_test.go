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
	r := NewRecent[string](time.Second)
	at := time.Unix(1_000, 0)
	r.Keep("a", "read", at)
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
		if _, ok := r.Find(test.id, test.now); ok != test.want {
			t.Errorf("%s: %v", test.name, ok)
		}
	}
	r.Forget("a")
	if _, ok := r.Find("a", at); ok {
		t.Error("it was forgotten, and is there")
	}
}

func TestRecentIsBounded(t *testing.T) {
	r := NewRecent[int](time.Hour)
	for i := range 3 * maxRecent {
		r.Keep(strconv.Itoa(i), i, time.Unix(1_000, 0))
		if len(r.kept) > maxRecent {
			t.Fatalf("%d are kept", len(r.kept))
		}
	}
}
