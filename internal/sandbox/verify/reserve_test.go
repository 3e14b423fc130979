package verify

import "testing"

// Less than is promised is a gap; a file system that cannot allocate is a note.
func TestDiskReserve(t *testing.T) {
	const promised = 256 << 20
	for held, want := range map[int64]Status{promised: OK, promised + 4096: OK, promised - 4096: Gap, 0: Gap, -1: Note} {
		if got := DiskReserve(held, promised); got.Status != want || got.Found == "" {
			t.Errorf("%d bytes: %+v, want %s", held, got, want)
		}
	}
}
