package memory_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/fakellm"
)

// sense is a model whose vectors are the scripted one's.
type sense struct {
	texts  []string // that it was asked for
	broken error
	change func([][]float32) [][]float32
}

func (*sense) Name() string { return "scripted/sense" }

func (s *sense) Embed(_ context.Context, texts []string) (vectors [][]float32, err error) {
	if s.broken != nil {
		return nil, s.broken
	}
	s.texts = append(s.texts, texts...)
	for _, t := range texts {
		vectors = append(vectors, fakellm.Vector(t))
	}
	if s.change != nil {
		vectors = s.change(vectors)
	}
	return vectors, nil
}

// paraphrases share no word with what they ask for, not even a stem.
var paraphrases = map[string]string{
	"which weekday is best for a rollout": "Tuesdays",
	"whom to ask concerning an invoice":   "Maria",
	"whitespace in source files":          "tabs",
	"minimum hours needed by a snapshot":  "forty minutes",
	"airport departure":                   "Lisbon",
}

func (f *fixture) fill(t *testing.T) {
	t.Helper()
	f.write(t, "MEMORY.md", strings.ReplaceAll(notes, "before code", "first"))
	f.write(t, "memory/2026-11-01.md", "The backup takes forty minutes and blocks writers.\n")
	f.write(t, "memory/sub/trip.md", "The flight to Lisbon leaves at nine. Seat 14C.\n")
}

// What words alone do not find, meaning does, and what they find stays found.
func TestRecallByMeaning(t *testing.T) {
	f := open(t)
	f.fill(t)
	for query, want := range paraphrases {
		if hit := f.first(t, query); strings.Contains(hit.Snippet, want) {
			t.Errorf("%q is no paraphrase: %+v", query, hit)
		}
	}
	f.Embedder = &sense{}
	for query, want := range paraphrases {
		hit := f.first(t, query)
		if !strings.Contains(hit.Snippet, want) || hit.Score <= 0 || hit.Score > 1 {
			t.Errorf("%q: %+v, want %q", query, hit, want)
		}
	}
	if hit := f.first(t, "heron"); !strings.Contains(hit.Snippet, "heron") {
		t.Errorf("a word of the text: %+v", hit)
	}
	found, err := f.Search(t.Context(), "quantum chromodynamics", 5)
	if err != nil || len(found.Hits) > 0 || found.Notice != "" {
		t.Errorf("nothing of this was written down: %+v, %v", found, err)
	}
}

// A piece is turned into a vector once, in any process, until it changes.
func TestVectorsAreKept(t *testing.T) {
	f := open(t)
	f.fill(t)
	model := &sense{}
	f.Embedder = model
	f.first(t, "airport")
	pieces := len(model.texts) - 1
	f.reopen(t)
	f.Embedder, model.texts = model, nil
	if f.first(t, "airport"); len(model.texts) != 1 {
		t.Errorf("asked again for %q", model.texts)
	}
	f.write(t, "memory/sub/trip.md", "The plane to Porto leaves at ten.\n")
	if model.texts = nil; !strings.Contains(f.first(t, "airport").Snippet, "Porto") || len(model.texts) != 2 {
		t.Errorf("asked for %q of %d pieces", model.texts, pieces)
	}
}

// A model that fails, or says what cannot be, leaves the words, and a notice.
func TestMeaningThatCannotBeHad(t *testing.T) {
	f := open(t)
	f.fill(t)
	for name, model := range map[string]*sense{
		"down":      {broken: errors.New("nobody answers")},
		"too few":   {change: func(v [][]float32) [][]float32 { return v[:0] }},
		"no number": {change: func(v [][]float32) [][]float32 { v[0][0] = float32(math.NaN()); return v }},
		"uneven":    {change: func(v [][]float32) [][]float32 { v[1] = v[1][:3]; return v }},
		"empty":     {change: func(v [][]float32) [][]float32 { v[0] = nil; return v }},
	} {
		f.Embedder = model
		found, err := f.Search(t.Context(), "the staging server", 3)
		if err != nil || len(found.Hits) == 0 || !strings.Contains(found.Hits[0].Snippet, "heron") || !strings.Contains(found.Notice, "by words only") {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := f.Search(gone, "server", 3); err == nil {
		t.Error("a search that was ended found something")
	}
}
