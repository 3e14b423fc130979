package quota

import "testing"

// What is taken from the disks is the most that directories can have grown.
func TestNear(t *testing.T) {
	r := &Limits{Size: 1000, Files: 100, Reserve: 50}
	held := &Usage{Bytes: 600, Files: 80}
	before := Disks{Free: 500}
	before.left[0].bytes, before.left[0].files = 500, 50
	before.left[1] = before.left[0]
	for _, c := range []struct {
		name         string
		bytes, files int64 // taken from the second disk
		free         int64
		want         bool
	}{
		{"nothing", 0, 0, 500, false},
		{"less than half of the room", 199, 9, 500, false},
		{"half of the bytes", 200, 0, 500, true},
		{"half of the files", 0, 10, 500, true},
		{"given back", -300, -30, 500, false},
		{"the reserve", 0, 0, 49, true},
	} {
		now := before
		now.Free = c.free
		now.left[1].bytes -= c.bytes
		now.left[1].files -= c.files
		if got := r.Near(held, before, now); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	if (&Limits{}).Near(held, before, Disks{}) {
		t.Error("near to no limit")
	}
}

// The time until the next check follows from what is left: of the nearest limit,
// less what was taken from the disk since.
func TestLeft(t *testing.T) {
	u := &Usage{Bytes: 400, Files: 40}
	before, now := Disks{Free: 10_000}, Disks{Free: 9900}
	before.left[0].bytes, now.left[0].bytes = 10_000, 9900
	before.left[0].files, now.left[0].files = 100, 90
	for name, c := range map[string]struct {
		limits Limits
		want   int64
	}{
		"the size":    {Limits{Size: 1000, Files: 100, Reserve: 50}, 500},
		"the files":   {Limits{Size: 1 << 40, Files: 100}, 50 * fileCost},
		"the reserve": {Limits{Size: 1000, Reserve: 9800}, 100},
		"nothing":     {Limits{Size: 300}, 0},
	} {
		if got := c.limits.Left(u, before, now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if !now.Less(before) || before.Less(now) || before.Less(before) {
		t.Error("what was taken from a disk is not seen")
	}
}
