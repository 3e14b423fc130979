package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Version is the version of the configuration that this program reads. It goes up
// when a key changes its meaning, so that an older program refuses what it would
// misread. A key that leaves is recorded in retired.
const Version = 1

// versionKey names the version in the file. OpenClaw's own files have none.
const versionKey = "version"

// secretsKey names a part of the file that OpenClaw's own files have with
// another meaning.
const secretsKey = "secrets"

// retiredKey is a key that left, and is accepted with a warning.
type retiredKey struct {
	version int    // of the configuration that left it out
	date    string // when
	instead string // what to write
}

// retired are the keys that left, by the name in their note tag.
var retired = map[string]retiredKey{
	"perSession":  {1, "2026-11-15", `scope: "session" for true, scope: "shared" for false`},
	"enableNoVnc": {1, "2026-11-15", "noVncEnabled"},
}

// warning returns what the use of a key with a note gives.
func warning(note string) string {
	if r, ok := retired[note]; ok {
		return "old key; write " + r.instead
	}
	return notes[note]
}

// newerVersion reports a file of a newer version, of which nothing else can be
// said: its keys may mean something else.
func (c *checker) newerVersion(root *node) bool {
	n := root.get(versionKey)
	if n == nil || n.kind != '0' || c.variables.active {
		return false
	}
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v <= Version || v != math.Trunc(v) {
		return false
	}
	c.error(finding{(*path)(nil).child(versionKey), n.offset, fmt.Sprintf("config version %s is newer than this atoll knows (%d): update atoll", n.text, Version), ""})
	return true
}

// dropForeign removes the keys of OpenClaw's file that are not ours to decode.
func (c *Config) dropForeign() {
	if c.isOpenClaw() {
		c.root.members = slices.DeleteFunc(c.root.members, func(m member) bool { return m.key == versionKey || m.key == secretsKey })
	}
}
