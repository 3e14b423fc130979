package memory

import "os"

// Text is a memory as a whole.
type Text struct{ Path, Body string }

// Texts returns the memories in a workspace, in the order of their names, up to
// so many bytes altogether. The rest, and what cannot be read, is counted in left.
func Texts(dir string, most int) (texts []Text, left int, err error) {
	root, err := os.Open(dir)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	for _, name := range list(root) {
		body, err := read(root, name)
		switch {
		case err != nil, len(body) > most:
			left++
		case body != "":
			most -= len(body)
			texts = append(texts, Text{name, body})
		}
	}
	return texts, left, nil
}
