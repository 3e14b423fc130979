package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const (
	journalName = "journal"
	maxJournal  = 256 << 20
	compactFrom = 1000
	checkLength = 9 // eight hexadecimal digits and a space before a record
)

// ErrJournal means that a line of the journal is damaged which is not the last.
var ErrJournal = errors.New("the journal of the sync gate is damaged")

// phase is how far a batch is. It is written when what it names is on disk.
type phase string

// The phases, in their order. Before placed a batch is taken back, from it on it is
// finished.
const (
	begun  phase = "begun"  // nothing of the base was touched
	ready  phase = "ready"  // the new files of a wave are there under temporary names
	placed phase = "placed" // the new files have their names
	ended  phase = "ended"  // what was there before is kept
)

// record is a line of the journal.
type record struct {
	Phase  phase         `json:"phase"`
	ID     string        `json:"id"`
	Time   time.Time     `json:"time"`
	By     string        `json:"by,omitempty"`
	Undoes string        `json:"undoes,omitempty"` // the batch that this one puts back
	Steps  []step        `json:"steps,omitempty"`  // of begun
	New    map[int]inode `json:"new,omitempty"`    // of ready: the files under temporary names, by their steps
	Result Result        `json:"result,omitempty"` // of ended
	Left   []string      `json:"left,omitempty"`   // of ended: paths that something else had changed
}

// journal is the log of batches. A record counts when it is on disk.
type journal struct {
	file    *os.File
	size    int64
	records []record
}

// openJournal reads a journal and cuts off a last line that was not finished.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxJournal+1))
	if err != nil || len(data) > maxJournal {
		return nil, errors.Join(ErrJournal, err, file.Close())
	}
	records, good, err := parseJournal(data)
	if err == nil && good < len(data) {
		err = errors.Join(file.Truncate(int64(good)), file.Sync())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &journal{file: file, size: int64(good), records: records}, nil
}

// parseJournal reads records and returns up to where they are good. Only the last
// line may be broken: it was being written when the process ended.
func parseJournal(data []byte) (records []record, good int, err error) {
	for rest := data; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		r, ok := parseLine(line)
		if !whole || !ok {
			if len(after) > 0 {
				return nil, good, fmt.Errorf("%w: at byte %d", ErrJournal, good)
			}
			return records, good, nil
		}
		records = append(records, r)
		good += len(line) + 1
		rest = after
	}
	return records, good, nil
}

func parseLine(line []byte) (r record, ok bool) {
	if len(line) < checkLength || line[checkLength-1] != ' ' {
		return r, false
	}
	sum, err := strconv.ParseUint(string(line[:checkLength-1]), 16, 32)
	if err != nil || uint32(sum) != crc32.ChecksumIEEE(line[checkLength:]) {
		return r, false
	}
	return r, json.Unmarshal(line[checkLength:], &r) == nil && r.valid()
}

// valid reports whether a record can be acted on: its names become names of files.
func (r *record) valid() bool {
	if !validID(r.ID) || r.Undoes != "" && !validID(r.Undoes) {
		return false
	}
	for i := range r.Steps {
		if !r.Steps[i].valid() {
			return false
		}
	}
	return true
}

// encode returns a record as a line.
func encode(r *record) ([]byte, error) {
	data, err := json.Marshal(r)
	line := append(fmt.Appendf(nil, "%08x ", crc32.ChecksumIEEE(data)), data...)
	return append(line, '\n'), err
}

// add writes a record and waits until it is on disk.
func (j *journal) add(r record) error {
	r.Time = time.Now().UTC()
	line, err := encode(&r)
	if err != nil {
		return err
	}
	_, err = j.file.Write(line)
	if err := errors.Join(err, j.file.Sync()); err != nil {
		return errors.Join(err, j.file.Truncate(j.size)) // no half line before the next
	}
	j.size += int64(len(line))
	j.records = append(j.records, r)
	return nil
}

// rewrite replaces the journal by these records.
func (j *journal) rewrite(records []record) error {
	var data []byte
	for i := range records {
		line, err := encode(&records[i])
		if err != nil {
			return err
		}
		data = append(data, line...)
	}
	path := j.file.Name()
	if err := writeSynced(path+".new", data); err != nil {
		return err
	}
	if err := errors.Join(os.Rename(path+".new", path), syncDir(filepath.Dir(path)), j.file.Close()); err != nil {
		return err
	}
	fresh, err := openJournal(path)
	if err == nil {
		*j = *fresh
	}
	return err
}

func (j *journal) close() error { return j.file.Close() }
