package envd

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"testing"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/wire"
)

// Whatever a client sends, a message is no larger than it may be, and is all that its
// envelope says or an error.
func FuzzReadEnvelope(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, '{', '}'})
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Add([]byte{2, 0, 0, 0, 0})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, '{'})
	f.Add([]byte{0, 0, 0, 0, 9, '{'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		c := &rpc{r: &http.Request{Body: io.NopCloser(bytes.NewReader(sent))}, share: membudget.Share{Budget: membudget.New(64<<20, 0), MinBuffer: 16 << 10, MaxBuffer: MaxMessage + 1}}
		defer c.share.Free()
		text, err := c.readEnvelope()
		if err == nil && (sent[0]&3 != 0 || len(text) != int(binary.BigEndian.Uint32(sent[1:5])) || len(text) > MaxMessage) {
			t.Errorf("%d bytes of %x", len(text), sent)
		}
	})
}

// What the guest makes in passing is not shown, and the file that it becomes is written.
func TestEventsOf(t *testing.T) {
	passing := wire.TemporaryPrefix + "x"
	got, err := eventsOf([]guestfs.FileEvent{
		{Path: passing, What: guestfs.FileCreated}, {Path: passing, What: guestfs.FileWritten}, {Path: passing, What: guestfs.FileRemoved}, {Path: "a", What: guestfs.FileCreated},
		{Path: "b", What: guestfs.FileCreated}, {Path: "b", What: guestfs.FileAttributes}, {Path: "b", What: guestfs.FileRemoved},
	})
	want := []fileEvent{{"a", eventCreate}, {"a", eventWrite}, {"b", eventCreate}, {"b", eventChmod}, {"b", eventRemove}}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v", got)
		}
	}
	if _, err := eventsOf([]guestfs.FileEvent{{What: guestfs.FileLost}}); err == nil {
		t.Error("lost changes are no error")
	}
}
