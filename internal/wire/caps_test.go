package wire_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

// TestCapOnGreetings bounds the first message of a peer that is not known yet.
func TestCapOnGreetings(t *testing.T) {
	hello := func(client string, padding int) []byte {
		body := fmt.Sprintf(`{"min":1,"max":1,"epoch":1,"kind":"control","client":%q%s}`, client, strings.Repeat(" ", padding))
		return append(binary.BigEndian.AppendUint32([]byte("atoll\x00\r\n"), uint32(len(body))), body...)
	}
	bare := len(hello("c", 0)) - 12
	for name, tt := range map[string]struct {
		greeting []byte
		want     error
	}{
		"the longest name":     {hello(strings.Repeat("n", wire.MaxID), 0), nil},
		"a longer one":         {hello(strings.Repeat("n", wire.MaxID+1), 0), wire.ErrProtocol},
		"a name with a slash":  {hello("../n", 0), wire.ErrProtocol},
		"the longest greeting": {hello("c", wire.MaxHello-bare), nil},
		"a longer greeting":    {hello("c", wire.MaxHello-bare+1), wire.ErrProtocol},
	} {
		ours, theirs := pair(t)
		go func() { _, _ = ours.Write(tt.greeting) }()
		if _, err := wire.ReadHello(theirs); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
