package guest

import (
	"strconv"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

func TestCapOnProcesses(t *testing.T) {
	table := newProcessTable()
	for i := range maxProcesses {
		if err := table.claim(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.claim("0"); wire.AsError(err).Code != wire.CodeExists {
		t.Errorf("an id that is taken: %v", err)
	}
	if err := table.claim("one more"); wire.AsError(err).Code != wire.CodeTooMany {
		t.Errorf("process %d: %v", maxProcesses+1, err)
	}
	table.forget("0")
	if err := table.claim("one more"); err != nil {
		t.Errorf("in the place of another: %v", err)
	}
}
