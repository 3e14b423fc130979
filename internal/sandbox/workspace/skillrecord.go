package workspace

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"
)

const (
	skillsSuffix = ".skills.json"
	// MaxSkillRecordBytes has room for MaxSkillFiles entries with long names.
	MaxSkillRecordBytes = 8 << 20
	skillRecordVersion  = 1
)

// skillRecord remembers which synced files were found equal to their sources,
// so that the next sync need not read them. It is a cache: a missing or damaged
// one costs time and nothing else.
type skillRecord struct {
	Version int                   `json:"version"`
	Files   map[string]skillEntry `json:"files"` // by path below the copy
}

// skillEntry is the mark of a source and of its copy when they were equal.
type skillEntry struct {
	Source string `json:"source"`
	Copy   string `json:"copy"`
}

// mark changes whenever a file does. A process in the sandbox can set the
// modification time of a file, but not the time of that change of its inode.
func mark(st unix.Stat_t) string {
	return fmt.Sprintf("%d.%d.%d.%d.%d", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

func (r skillRecord) knows(rel string) bool {
	_, ok := r.Files[rel]
	return ok
}

// holds tells whether a file of the copy is still as it was synced.
func (r skillRecord) holds(rel string, st unix.Stat_t) bool {
	e, ok := r.Files[rel]
	return ok && e.Copy == mark(st)
}

func (v *lockedRoot) loadSkills() skillRecord {
	var r skillRecord
	data, err := v.readRecord(v.layout.Slug+skillsSuffix, MaxSkillRecordBytes)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil || r.Version != skillRecordVersion {
		return skillRecord{}
	}
	return r
}

func (v *lockedRoot) saveSkills(r skillRecord) error {
	data, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return err
	}
	return v.writeRecord(v.layout.Slug+skillsSuffix, data)
}
