package memory

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unicode"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/store"
)

const schemaVersion = 2

const schema = `
CREATE TABLE files (path TEXT PRIMARY KEY, hash TEXT NOT NULL);
CREATE VIRTUAL TABLE pieces USING fts5(text, path UNINDEXED, first UNINDEXED, last UNINDEXED, hash UNINDEXED, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TABLE vectors (hash TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (hash, model)) WITHOUT ROWID;
`

// Limits of a search.
const (
	DefaultHits = 6
	MaxHits     = 50
	maxWords    = 32
	maxSnippet  = 700
	MaxLines    = 2000
)

// Index is the memories of one agent.
type Index struct {
	// Embedder, if set, has pieces found by their meaning too.
	Embedder Embedder

	db  *store.DB
	dir string
}

// Open opens the index in a file; dir is the agent's workspace.
func Open(ctx context.Context, file, dir string) (*Index, error) {
	db, err := store.OpenIndex(ctx, file, schemaVersion, schema)
	if err != nil {
		return nil, err
	}
	return &Index{db: db, dir: dir}, nil
}

// Close closes the index.
func (x *Index) Close() error { return x.db.Close() }

// Hit is a piece that matches. Score is between 0 and 1.
type Hit struct {
	Path    string  `json:"path"`
	First   int     `json:"startLine"`
	Last    int     `json:"endLine"`
	Score   float64 `json:"score"`
	Snippet string  `json:"snippet"`
}

// Found is the outcome of a search. Notice says why meaning was not looked at,
// where it should have been.
type Found struct {
	Hits   []Hit
	Notice string
}

// Search brings the index up to date and finds pieces that share words with the
// query, or its meaning, the best first.
func (x *Index) Search(ctx context.Context, query string, most int) (*Found, error) {
	if err := x.refresh(ctx); err != nil {
		return nil, err
	}
	if most <= 0 {
		most = DefaultHits
	}
	most = min(most, MaxHits)
	hits, err := x.byWords(ctx, query)
	if err != nil {
		return nil, err
	}
	found := &Found{Hits: hits}
	if x.Embedder != nil {
		if found, err = x.withMeaning(ctx, query, hits); err != nil {
			return nil, err
		}
	}
	found.Hits = found.Hits[:min(most, len(found.Hits))]
	for i := range found.Hits {
		found.Hits[i].Snippet = shorten(found.Hits[i].Snippet)
	}
	return found, nil
}

// byWords finds pieces that share words with the query, the best first. Their
// snippets are whole.
func (x *Index) byWords(ctx context.Context, query string) (hits []Hit, err error) {
	match := expression(query)
	if match == "" {
		return nil, nil
	}
	rows, err := x.db.QueryContext(ctx,
		`SELECT path, first, last, text, bm25(pieces) FROM pieces WHERE pieces MATCH ? ORDER BY bm25(pieces), path, first LIMIT ?`, match, MaxHits)
	if err != nil {
		return nil, x.db.Explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var h Hit
		var rank float64
		if err := rows.Scan(&h.Path, &h.First, &h.Last, &h.Snippet, &rank); err != nil {
			return nil, x.db.Explain(err)
		}
		h.Score = score(rank)
		hits = append(hits, h)
	}
	return hits, x.db.Explain(rows.Err())
}

// score turns a rank, which is better the more negative it is, into a number
// between 0 and 1.
func score(rank float64) float64 {
	r := math.Max(-rank, 0)
	return rounded(r / (1 + r))
}

func rounded(f float64) float64 { return math.Round(1000*f) / 1000 }

func shorten(text string) string {
	if r := []rune(text); len(r) > maxSnippet {
		return string(r[:maxSnippet]) + "…"
	}
	return text
}

// expression asks for any of the query's words. Nothing of the query reaches
// the index's own language.
func expression(query string) string {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var terms []string
	for _, w := range words {
		if len(terms) < maxWords && !common(w) {
			terms = append(terms, `"`+w+`"`)
		}
	}
	return strings.Join(terms, " OR ")
}

// common words say nothing about what is looked for.
func common(word string) bool {
	switch word {
	case "a", "about", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "had", "has", "have", "how", "i", "in", "is",
		"it", "its", "me", "my", "of", "on", "or", "our", "s", "should", "t", "that", "the", "their", "there", "this", "to", "was", "we", "were", "what",
		"when", "where", "which", "who", "why", "will", "with", "would", "you", "your":
		return true
	}
	return false
}

// refresh indexes the files that changed.
func (x *Index) refresh(ctx context.Context) error {
	root, err := hostpath.OpenDir(x.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	return x.db.Tx(ctx, func(tx *sql.Tx) error {
		known, err := hashes(ctx, tx)
		if err != nil {
			return err
		}
		for _, name := range list(root) {
			text, err := read(root, name)
			if err != nil || text == "" {
				continue // a link, a pipe, too large: no memory
			}
			hash := digest(text)
			old, had := known[name]
			delete(known, name)
			if had && old == hash {
				continue
			}
			if err := replace(ctx, tx, name, hash, text); err != nil {
				return err
			}
		}
		for gone := range known {
			if err := forget(ctx, tx, gone); err != nil {
				return err
			}
		}
		return nil
	})
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func hashes(ctx context.Context, tx *sql.Tx) (map[string]string, error) {
	rows, err := tx.QueryContext(ctx, "SELECT path, hash FROM files")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	known := map[string]string{}
	for rows.Next() {
		var name, hash string
		if err := rows.Scan(&name, &hash); err != nil {
			return nil, err
		}
		known[name] = hash
	}
	return known, rows.Err()
}

func replace(ctx context.Context, tx *sql.Tx, name, hash, text string) error {
	if err := forget(ctx, tx, name); err != nil {
		return err
	}
	for _, p := range cut(text) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO pieces (text, path, first, last, hash) VALUES (?, ?, ?, ?, ?)", p.text, name, p.first, p.last, digest(p.text)); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO files (path, hash) VALUES (?, ?)", name, hash)
	return err
}

func forget(ctx context.Context, tx *sql.Tx, name string) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM pieces WHERE path = ?", name); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM files WHERE path = ?", name)
	return err
}

// ErrNoMemory is a path that is none of the agent's memories.
var ErrNoMemory = errors.New("no such memory")

// Get returns lines of a memory below an agent's workspace, from the given one
// on; 0 lines are all, within the limit.
func Get(dir, name string, from, lines int) (string, error) {
	if !indexed(name) {
		return "", fmt.Errorf("%s: %w: only MEMORY.md and memory/*.md are", name, ErrNoMemory)
	}
	root, err := hostpath.OpenDir(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	text, err := read(root, name)
	if err != nil {
		return "", err
	}
	if text == "" {
		return "", fmt.Errorf("%s: %w", name, ErrNoMemory)
	}
	all := strings.Split(text, "\n")
	first := min(max(from, 1)-1, len(all))
	if lines <= 0 || lines > MaxLines {
		lines = MaxLines
	}
	return strings.Join(all[first:min(first+lines, len(all))], "\n"), nil
}
