package fakellm

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"
)

// dimensions is the length of a vector: a place for every concept, and the rest
// for all other words.
const dimensions = 96

// concepts are words that mean much the same. What a real model knows of all
// words, this one knows of a few.
var concepts = [][]string{
	{"deploy", "deploys", "deploying", "release", "ship", "rollout", "publish"},
	{"server", "machine", "host", "box", "computer"},
	{"staging", "preproduction", "rehearsal"},
	{"day", "weekday", "tuesday", "tuesdays", "monday", "friday"},
	{"owner", "owns", "responsible", "charge", "maintainer"},
	{"billing", "invoice", "invoices", "payment", "payments", "bills"},
	{"indent", "indentation", "tabs", "spaces", "whitespace"},
	{"backup", "backups", "snapshot", "copy", "dump"},
	{"database", "databases", "postgres", "storage"},
	{"flight", "plane", "airport", "departure", "leaves", "travel", "trip"},
	{"seat", "row", "chair"},
	{"duration", "minutes", "hours", "long", "takes"},
	{"name", "called", "label"},
}

// readTexts reads what vectors are wanted of.
func (r *Request) readTexts() error {
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		r.Texts = []string{text}
		return nil
	}
	return json.Unmarshal(r.Input, &r.Texts)
}

// vectors is the answer to a request for vectors, as OpenAI gives it.
func (r *Request) vectors() any {
	data := []map[string]any{}
	for i, text := range r.Texts {
		data = append(data, map[string]any{"object": "embedding", "index": i, "embedding": Vector(text)})
	}
	used := r.Usage(Turn{}).Prompt
	return map[string]any{"object": "list", "model": r.Model, "data": data, "usage": map[string]int{"prompt_tokens": used, "total_tokens": used}}
}

// Vector is the vector of a text, of length 1: texts that share concepts have
// vectors that are near, also when they share no word.
func Vector(text string) []float32 {
	v := make([]float64, dimensions)
	for _, word := range words(text) {
		place, weight := placeOf(word)
		v[place] += weight
	}
	length := 0.0
	for _, x := range v {
		length += x * x
	}
	out := make([]float32, dimensions)
	for i, x := range v {
		out[i] = float32(x / math.Max(math.Sqrt(length), 1e-9))
	}
	return out
}

// placeOf is where a word counts, and how much: words without a concept little.
func placeOf(word string) (place int, weight float64) {
	for i, same := range concepts {
		if slices.Contains(same, word) {
			return i, 1
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(word))
	return len(concepts) + int(h.Sum32()%uint32(dimensions-len(concepts))), 0.2
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func wordsOf(texts []string) (n int) {
	for _, t := range texts {
		n += len(words(t))
	}
	return n
}
