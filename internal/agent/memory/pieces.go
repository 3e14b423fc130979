package memory

import "strings"

const (
	// pieceBytes is how much of a file makes one piece, and overlapLines how
	// many lines it shares with the next, so that a thought is found whole.
	pieceBytes   = 1600
	overlapLines = 2
)

// piece is a part of a file. Lines count from 1, the last one is in it.
type piece struct {
	first, last int
	text        string
}

// cut makes pieces of a text: a heading begins one, and so does a full one.
func cut(text string) (pieces []piece) {
	lines := strings.Split(text, "\n")
	first, size := 0, 0
	end := func(next int) {
		if body := strings.Join(lines[first:next], "\n"); strings.TrimSpace(body) != "" {
			pieces = append(pieces, piece{first + 1, next, body})
		}
	}
	for i, line := range lines {
		full := size+len(line) > pieceBytes
		if i > first && (full || strings.HasPrefix(line, "#")) {
			end(i)
			next := i
			if full {
				next = max(first+1, i-overlapLines)
			}
			first, size = next, 0
			for _, kept := range lines[first:i] {
				size += len(kept) + 1
			}
		}
		size += len(line) + 1
	}
	end(len(lines))
	return pieces
}
