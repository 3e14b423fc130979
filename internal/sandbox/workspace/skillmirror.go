package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// mirror makes a directory of the copy equal to a tree. The agent may be
// rearranging that directory: every step is on one name in a directory held
// open, and what is not as it should be is replaced, not written to.
type mirror struct {
	ctx       context.Context
	owner     *hostpath.Owner
	old, next skillRecord
	report    *SkillReport
}

// top mirrors skills/ of the copy. Without skills, none is made.
func (m *mirror) top(base *os.File, want *skillTree) error {
	if len(want.dirs) == 0 {
		there, err := existsAt(base, skillsName)
		if err != nil || !there {
			return err
		}
	}
	return m.enter(base, skillsName, want)
}

// enter mirrors the directory at rel, whose parent is open.
func (m *mirror) enter(parent *os.File, rel string, want *skillTree) error {
	dir, err := m.open(parent, rel)
	if err != nil {
		return err
	}
	defer closeAll(dir)
	if err := m.removeStale(dir, want); err != nil {
		return err
	}
	for name, source := range want.files {
		if err := m.file(dir, path.Join(rel, name), source); err != nil {
			return err
		}
	}
	for name, tree := range want.dirs {
		if err := m.enter(dir, path.Join(rel, name), tree); err != nil {
			return err
		}
	}
	return nil
}

// open opens a directory, in place of whatever else has its name.
func (m *mirror) open(parent *os.File, rel string) (*os.File, error) {
	name := path.Base(rel)
	dir, _, err := makeDir(parent, name, newDir{owner: m.owner, mode: sharedDirMode})
	if !errors.Is(err, hostpath.ErrSymlink) && !errors.Is(err, hostpath.ErrNotDirectory) {
		return dir, err
	}
	m.report.Warnings.addf(rel, "was not a directory in the sandbox's copy, replaced")
	if err := removeTree(m.ctx, parent, name); err != nil {
		return nil, err
	}
	dir, _, err = makeDir(parent, name, newDir{owner: m.owner, mode: sharedDirMode})
	return dir, err
}

// removeStale removes what does not belong into a directory, and what is of
// another kind than it should be.
func (m *mirror) removeStale(dir *os.File, want *skillTree) error {
	for {
		names, err := nextNames(dir)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if m.belongs(dir, name, want) {
				continue
			}
			if err := removeTree(m.ctx, dir, name); err != nil {
				return err
			}
			m.report.Removed++
		}
	}
}

func (m *mirror) belongs(dir *os.File, name string, want *skillTree) bool {
	st, err := lstatAt(dir, name)
	if err != nil {
		return true // gone already
	}
	if want.dirs[name] != nil {
		return st.Mode&unix.S_IFMT == unix.S_IFDIR
	}
	return want.has(name) && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// file brings one file up to date. If neither it nor its source changed since
// they were found equal, neither is read.
func (m *mirror) file(dir *os.File, rel string, source skillSource) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	st, err := lstatAt(dir, path.Base(rel))
	if err == nil && m.old.Files[rel] == (skillEntry{Source: source.mark, Copy: mark(st)}) {
		m.next.Files[rel] = m.old.Files[rel]
		return nil
	}
	data, sourceStat, err := readStat(source.root, source.rel)
	if err != nil {
		m.report.Warnings.addf(rel, "not synced: %v", reason(err))
		return nil
	}
	copyMark, err := m.write(dir, rel, source, data)
	if err == nil && copyMark != "" {
		m.next.Files[rel] = skillEntry{Source: mark(sourceStat), Copy: copyMark}
	}
	return err
}

// write makes the file hold data, if it does not, and returns its mark; none if
// it was changed again at once, and then the next sync will see to it.
func (m *mirror) write(dir *os.File, rel string, source skillSource, data []byte) (string, error) {
	name := path.Base(rel)
	if mark := equalMark(dir, name, source, data); mark != "" {
		return mark, nil
	}
	_, err := hostpath.WriteBeneath(dir, name, bytes.NewReader(data),
		hostpath.WriteOptions{Mode: source.mode, Owner: m.owner, Replace: true})
	if err != nil {
		return "", err
	}
	m.report.Written++
	return equalMark(dir, name, source, data), nil
}

// equalMark returns the mark of a file that holds data in the right mode, else "".
func equalMark(dir *os.File, name string, source skillSource, data []byte) string {
	have, st, err := readStat(dir, name)
	if err != nil || !bytes.Equal(have, data) || st.Mode&0o7777 != uint32(source.mode) {
		return ""
	}
	return mark(st)
}

// readStat reads a file and tells what it was before: a change in between makes
// that outdated, so it is noticed the next time.
func readStat(root *os.File, rel string) (data []byte, st unix.Stat_t, err error) {
	file, err := hostpath.OpenRegularBeneath(root, rel, MaxSkillFileBytes)
	if err != nil {
		return nil, st, err
	}
	defer closeAll(file)
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, st, err
	}
	data, err = io.ReadAll(io.LimitReader(file, MaxSkillFileBytes+1))
	if len(data) > MaxSkillFileBytes {
		err = hostpath.ErrTooLarge
	}
	return data, st, err
}
