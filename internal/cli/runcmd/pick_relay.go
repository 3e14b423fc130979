package runcmd

import (
	"errors"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/relay/deliver"
)

// pickRelay returns the run that word names among those whose commits the relay
// has, or waits for; word itself if there is none.
func pickRelay(relays *deliver.Relays, word string) (string, error) {
	records, err := relays.List()
	if err != nil {
		return "", err
	}
	open, _ := relays.OpenWork() // what cannot be read is said by status
	var all []console.Named
	for _, r := range records {
		all = append(all, console.Named{Name: r.Run})
	}
	for _, w := range open {
		all = append(all, console.Named{Name: w.Run})
	}
	id, err := console.Pick("run", word, all)
	if errors.Is(err, console.ErrNoneNamed) {
		return word, nil
	}
	return id, err
}
