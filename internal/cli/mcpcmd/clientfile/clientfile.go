// Package clientfile edits the files in which clients of the Model Context Protocol name
// their servers.
package clientfile

// ServerName is the name of the server in the configuration of clients.
const ServerName = "atoll"

// Editor returns the text of a file with the server in it, or without it if the entry is nil.
type Editor func(text []byte, entry *Entry) ([]byte, error)

// Entry is the server as clients name it.
type Entry struct {
	Type    string   `json:"type,omitempty" toml:"-"`
	Command string   `json:"command" toml:"command"`
	Args    []string `json:"args" toml:"args"`
}
