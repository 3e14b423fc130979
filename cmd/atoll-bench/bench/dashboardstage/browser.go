package dashboardstage

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench/nodechild"
)

//go:embed pages.mjs
var pagesProgram []byte

const chromium = "/usr/lib/chromium/chromium-headless-shell"

// looker is a process that looks at the pages with Playwright.
type looker struct{ *nodechild.Child }

// answer is what the process measured in a step.
type answer struct {
	Ready, Begun bool
	Scripts      float64
	Requests     float64
	Bytes        float64
	Rows, Listed float64
	Busy         float64
	Delays       []float64
}

// startLooker starts it, logged in with a code.
func startLooker(ctx context.Context, base, code string) (*looker, error) {
	child, err := nodechild.Start(ctx, "dashboard", pagesProgram, base, code, chromium)
	if err != nil {
		return nil, err
	}
	l := &looker{child}
	if first, err := l.hear(); err != nil || !first.Ready {
		return nil, errors.Join(err, errors.New("the browser did not begin"), l.Close())
	}
	return l, nil
}

// do has it take a step.
func (l *looker) do(step ...string) (*answer, error) {
	if err := l.say(step...); err != nil {
		return nil, err
	}
	return l.hear()
}

func (l *looker) say(step ...string) error {
	text, err := json.Marshal(step)
	if err != nil {
		return err
	}
	return l.Tell(string(text))
}

func (l *looker) hear() (*answer, error) {
	line, err := l.Hear()
	if err != nil {
		return nil, err
	}
	a := &answer{}
	return a, json.Unmarshal([]byte(line), a)
}
