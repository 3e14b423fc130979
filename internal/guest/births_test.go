package guest

import (
	"os/exec"
	"testing"
	"time"
)

func TestOnlyOurs(t *testing.T) {
	b := &births{cycle: time.Second}
	now := time.Now()
	at := func(last int, ours uint64, after time.Duration) headcount {
		return headcount{last: last, ours: ours, at: now.Add(after)}
	}
	tests := []struct {
		name     string
		from, to headcount
		want     bool
	}{
		{"ours alone", at(100, 5, 0), at(103, 8, time.Millisecond), true},
		{"somebody else's, too", at(100, 5, 0), at(104, 8, time.Millisecond), false},
		{"a number was skipped", at(100, 5, 0), at(102, 6, time.Millisecond), false},
		{"nothing known before", headcount{}, at(3, 3, time.Millisecond), false},
		{"nothing known now", at(100, 5, 0), headcount{}, false},
		{"it began anew", at(32_000, 5, 0), at(301, 8, time.Millisecond), false},
		{"long enough to have gone round", at(100, 5, 0), at(103, 8, time.Second), false},
		{"the kernel says nothing", at(100, 5, 0), at(100, 5, time.Millisecond), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := b.onlyOurs(tt.from, tt.to); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestBirthsCountEverybody: the kernel's count goes up with every process,
// whoever makes it.
func TestBirthsCountEverybody(t *testing.T) {
	b := newBirths()
	if b.file < 0 || b.cycle <= 0 {
		t.Fatalf("%+v", b)
	}
	for range 20 {
		before := b.count(0)
		if err := exec.Command("sh", "-c", "true | true").Run(); err != nil {
			t.Fatal(err)
		}
		after := b.count(1)
		if before.last <= 0 || after.last <= 0 {
			t.Fatalf("%+v %+v", before, after)
		}
		if b.onlyOurs(before, after) {
			t.Errorf("of a shell and its two children one is ours: %+v %+v", before, after)
		}
	}
}
