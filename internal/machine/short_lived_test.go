package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// TestShortLivedClients: a program that runs a few commands and ends leaves nothing
// in the guest, which keeps the result of a command for a host that might come
// back for it. Many such programs, one after the other, would meet the guest's
// limit.
func TestShortLivedClients(t *testing.T) {
	for commands, clients := range map[int]int{1: 300, 5: 100} { // more than two take direct wires
		t.Run(fmt.Sprintf("%d commands each", commands), func(t *testing.T) {
			g, watcher := start(t)
			for i := range clients {
				m := machine.New(g.Dial, nil)
				for range commands {
					if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}}); err != nil {
						t.Fatalf("client %d: %v", i, err)
					}
				}
				_ = m.Close()
			}
			deadline := time.Now().Add(5 * time.Second) // much less than an orphan is kept
			for {
				info, err := watcher.Info(patience(t))
				if err != nil {
					t.Fatal(err)
				}
				if info.Processes <= clients/20 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("the guest still keeps %d results", info.Processes)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
}
