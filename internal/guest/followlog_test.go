package guest

import (
	"testing"
	"time"
)

// Output waits for the first follower for a time, and no longer.
func TestAwaitedFollowerThatDoesNotCome(t *testing.T) {
	o := newLog()
	o.awaitFollower(20 * time.Millisecond)
	for range 4 {
		o.write(0, make([]byte, maxLogTail)) // it returns without a follower
	}
	if stdout, _ := o.totals(); stdout != 4*maxLogTail {
		t.Errorf("%d bytes", stdout)
	}
}
