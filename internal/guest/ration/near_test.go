package ration

import "testing"

// What is taken from the disks is the most that directories can have grown.
func TestNear(t *testing.T) {
	r := &Ration{Size: 1000, Files: 100, Reserve: 50}
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
	if (&Ration{}).Near(held, before, Disks{}) {
		t.Error("near to no limit")
	}
}
