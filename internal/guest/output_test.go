package guest

import (
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

// A request whose connection broke before its process was followed takes the output from
// no host that has attached meanwhile, and does not count that one as having left.
func TestHostThatAttachedEarlyKeepsTheOutput(t *testing.T) {
	o := newOutput()
	reader, ok := o.attachFrom(&wire.Attach{})
	if !ok {
		t.Fatal("it may not attach")
	}
	if _, ok := o.attachFrom(nil); ok {
		t.Error("the first request took over")
	}
	if _, ok := o.unread(); ok {
		t.Error("nobody reads")
	}
	o.close()
	if more, err := o.await(reader); more || err != nil {
		t.Errorf("end of output: %v, %v", more, err)
	}
	if _, ok := o.detach(reader); !ok {
		t.Error("it was no longer the reader")
	}
	if _, ok := o.unread(); !ok {
		t.Error("somebody reads")
	}
	if _, ok := newOutput().attachFrom(nil); !ok {
		t.Error("the first request gets nothing")
	}
}
