package memory

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Embedder turns texts into vectors: texts that mean much the same have vectors
// that point the same way.
type Embedder interface {
	// Name is the model's: vectors of two models cannot be compared.
	Name() string
	// Embed returns a vector for each text.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

const (
	// The weights of the two scores: equal words count less than similar meaning.
	meaningWeight = 0.7
	wordsWeight   = 0.3
	// minSimilarity is from where on two texts have to do with each other.
	minSimilarity = 0.35
	// maxBatch bounds the texts of one request, maxNew the pieces that one search
	// has turned into vectors: the rest come with the next.
	maxBatch  = 64
	maxNew    = 1024
	maxVector = 8192 // dimensions
)

// withMeaning adds what is near in meaning to what shares words, and ranks both
// together. If the model cannot be asked, words have to do, and that is said.
func (x *Index) withMeaning(ctx context.Context, query string, hits []Hit) (*Found, error) {
	wanted, err := x.embed(ctx, query)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return &Found{hits, "compared by words only, not by meaning: " + err.Error()}, nil
	}
	byPlace := map[string]int{}
	for i := range hits {
		hits[i].Score = rounded(wordsWeight * hits[i].Score)
		byPlace[hits[i].position()] = i
	}
	err = x.eachVector(ctx, func(h Hit, v []float32) {
		alike := cosine(wanted, v)
		if i, known := byPlace[h.position()]; known {
			hits[i].Score = rounded(hits[i].Score + meaningWeight*max(alike, 0))
		} else if alike >= minSimilarity {
			h.Score = rounded(meaningWeight * alike)
			hits = append(hits, h)
		}
	})
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(-cmp.Compare(a.Score, b.Score), cmp.Compare(a.Path, b.Path), a.First-b.First)
	})
	return &Found{Hits: hits}, err
}

func (h *Hit) position() string { return fmt.Sprintf("%s:%d", h.Path, h.First) }

// embed returns the vector of the query, and sees to those of the pieces.
func (x *Index) embed(ctx context.Context, query string) ([]float32, error) {
	texts, err := x.missingVectors(ctx)
	if err != nil {
		return nil, err
	}
	var wanted []float32
	for batch := range slices.Chunk(append([]string{query}, texts...), maxBatch) {
		vectors, err := x.ask(ctx, batch)
		if err != nil {
			return nil, err
		}
		if wanted == nil {
			wanted, batch, vectors = vectors[0], batch[1:], vectors[1:]
		}
		if err := x.storeVectors(ctx, batch, vectors); err != nil {
			return nil, err
		}
	}
	return wanted, nil
}

// missingVectors returns pieces that have no vector of the model yet.
func (x *Index) missingVectors(ctx context.Context) (texts []string, err error) {
	rows, err := x.db.QueryContext(ctx, `SELECT min(text) FROM pieces
WHERE hash NOT IN (SELECT hash FROM vectors WHERE model = ?) GROUP BY hash ORDER BY min(rowid) LIMIT ?`, x.Embedder.Name(), maxNew)
	if err != nil {
		return nil, x.db.Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, x.db.Explain(err)
		}
		texts = append(texts, text)
	}
	return texts, x.db.Explain(rows.Err())
}

// ask asks the model, and looks at what it says: a vector each, of numbers.
func (x *Index) ask(ctx context.Context, texts []string) ([][]float32, error) {
	vectors, err := x.Embedder.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(texts) {
		return nil, fmt.Errorf("%d vectors came for %d texts", len(vectors), len(texts))
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) > maxVector || len(v) != len(vectors[0]) || !isFinite(v) {
			return nil, fmt.Errorf("a vector of %d numbers cannot be used", len(v))
		}
	}
	return vectors, nil
}

func isFinite(v []float32) bool {
	return !slices.ContainsFunc(v, func(f float32) bool { return math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) })
}

// storeVectors writes vectors down, and forgets those of pieces that are gone.
func (x *Index) storeVectors(ctx context.Context, texts []string, vectors [][]float32) error {
	if len(texts) == 0 {
		return nil
	}
	return x.db.Explain(x.db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM pieces)"); err != nil {
			return err
		}
		for i, text := range texts {
			blob, err := binary.Append(nil, binary.LittleEndian, vectors[i])
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO vectors (hash, model, vector) VALUES (?, ?, ?)", digest(text), x.Embedder.Name(), blob); err != nil {
				return err
			}
		}
		return nil
	}))
}

// eachVector shows every piece that has a vector of the model.
func (x *Index) eachVector(ctx context.Context, show func(Hit, []float32)) error {
	rows, err := x.db.QueryContext(ctx, `SELECT p.path, p.first, p.last, p.text, v.vector FROM pieces p JOIN vectors v ON v.hash = p.hash AND v.model = ?`, x.Embedder.Name())
	if err != nil {
		return x.db.Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var h Hit
		var blob []byte
		if err := rows.Scan(&h.Path, &h.First, &h.Last, &h.Snippet, &blob); err != nil {
			return x.db.Explain(err)
		}
		v := make([]float32, len(blob)/4)
		if _, err := binary.Decode(blob, binary.LittleEndian, v); err != nil {
			return err
		}
		show(h, v)
	}
	return x.db.Explain(rows.Err())
}

// cosine tells how much two vectors point the same way; 0 if they cannot be
// compared.
func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return 0
	}
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return min(dot/math.Sqrt(aa*bb), 1)
}
