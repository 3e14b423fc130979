package console

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"
)

// Warnings are lines for a person, on one line each and harmless for a terminal;
// what is less is not shown.
func TestWarningsAreForPeople(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(newLogHandler(&out, slog.LevelWarn)).With("run", "r1")
	logger.Info("nothing of this")
	logger.Warn("the price is not known", "model", "m", "empty", "")
	logger.WithGroup("g").Error("it failed", "error", errors.New("no\nspace\x1b[31m"))
	const want = "warning: the price is not known (run r1, model m)\nwarning: it failed (run r1): no; space\\u001b[31m\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A word that lacks a letter is completed before one of its letters is replaced.
func TestNearestVerb(t *testing.T) {
	for word, want := range map[string]string{"rn": "run", "rum": "rm", "rnu": "rm"} {
		if got := nearest(word, []string{"rm", "run", "runs"}); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
