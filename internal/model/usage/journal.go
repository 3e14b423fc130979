package usage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// journal is the file that all processes of a state directory append to, one at
// a time. Its lock belongs to the open file and ends with the process.
//
// A large journal is replaced by a new one of the next generation, into which
// the open reservations and what is not in SQLite yet are carried over. The old
// file has then no name any more, by which other processes notice; they read
// it to its end before they open the new one, and go on behind what was carried.
type journal struct {
	path     string
	lockFile *os.File
	file     *os.File
	head     head
	position int64 // up to where this process has read
	size     int64 // of the file, as of the last lock
	buffer   []byte
}

// head is the beginning of a journal.
type head struct {
	generation int64
	carried    int64 // where what came from the generation before ends
}

const (
	journalMagic  = "atollus1"
	journalHeader = len(journalMagic) + 8 + 8 + 4 // generation, end of what was carried, checksum
	lockPatience  = 20 * time.Second
	firstPause    = 20 * time.Microsecond
	longestPause  = 2 * time.Millisecond
)

// ErrBusy means that the journal's lock could not be had in time.
var ErrBusy = errors.New("the journal of usage is locked by another process")

// openJournal opens the journal in dir; generation is that of a new one.
func openJournal(ctx context.Context, dir string, generation int64) (*journal, error) {
	lockFile, err := openLock(dir)
	if err != nil {
		return nil, err
	}
	j := &journal{path: journalPath(dir), lockFile: lockFile}
	if err := j.setLock(ctx); err != nil {
		_ = lockFile.Close()
		return nil, err
	}
	defer j.unlock()
	if _, err := os.Stat(j.path); errors.Is(err, os.ErrNotExist) {
		if err = j.replace(generation, nil); err != nil {
			return nil, errors.Join(err, lockFile.Close())
		}
	}
	if j.file, j.head, err = openHead(j.path); err != nil {
		return nil, errors.Join(err, lockFile.Close())
	}
	j.position = int64(journalHeader)
	return j, nil
}

func journalPath(dir string) string { return filepath.Join(dir, "journal") }

func openLock(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
}

func (j *journal) close() error {
	return errors.Join(j.file.Sync(), j.file.Close(), j.lockFile.Close())
}

// lock takes the journal for this process and looks at the file: it may have
// grown, or been replaced. Records that are new to this process go into the state.
func (j *journal) lock(ctx context.Context, state *ledgerState) error {
	if err := j.setLock(ctx); err != nil {
		return err
	}
	if err := j.catchUp(state); err != nil {
		j.unlock()
		return err
	}
	return nil
}

func (j *journal) setLock(ctx context.Context) error {
	whole := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
	deadline := time.Now().Add(lockPatience)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := unix.FcntlFlock(j.lockFile.Fd(), unix.F_OFD_SETLK, &whole)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES):
			return fmt.Errorf("lock of the journal of usage: %w", err)
		case time.Now().After(deadline):
			return ErrBusy
		}
		select {
		case <-ctx.Done():
			return errors.Join(ErrBusy, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (j *journal) unlock() {
	whole := unix.Flock_t{Type: unix.F_UNLCK, Len: 1}
	_ = unix.FcntlFlock(j.lockFile.Fd(), unix.F_OFD_SETLK, &whole) // fails only for a lock we do not have
}

// catchUp reads what others wrote, and follows a replaced file.
func (j *journal) catchUp(state *ledgerState) error {
	for {
		var facts unix.Stat_t
		if err := unix.Fstat(int(j.file.Fd()), &facts); err != nil {
			return fmt.Errorf("journal of usage: %w", err)
		}
		j.size = facts.Size
		replaced := facts.Nlink == 0
		err := j.readTail(state.apply)
		if replaced && errors.Is(err, ErrDamaged) { // it was, and that was mended
			j.head.generation, err = 0, nil
		}
		if err != nil || !replaced {
			return err
		}
		if err := j.follow(state); err != nil {
			return err
		}
	}
}

// readTail reads to the end of the file. The lock is held, so an incomplete
// record is what a killed process, or a full disk, left: it never counted.
func (j *journal) readTail(read func(*record)) error {
	if j.size == j.position {
		return nil
	}
	end, err := readRecords(j.file, j.position, j.size, read)
	if err != nil {
		return err
	}
	j.position = end
	switch rest := j.size - end; {
	case rest < 0:
		return damaged(j.path, "ends at byte %d, before byte %d, up to which it was read", j.size, end)
	case rest > maxRecord+frameHead:
		return damaged(j.path, "has no whole record at byte %d", end)
	case rest > 0:
		j.size = end
		return j.file.Truncate(end)
	}
	return nil
}

// readRecords reads whole records between two places of a file and returns
// where the last of them ends.
func readRecords(f io.ReaderAt, from, to int64, read func(*record)) (int64, error) {
	const chunk = 256 << 10
	buffer := make([]byte, min(max(to-from, 0), chunk))
	var r record
	for from < to {
		n, err := f.ReadAt(buffer[:min(to-from, int64(len(buffer)))], from)
		if err != nil && !errors.Is(err, io.EOF) {
			return from, fmt.Errorf("journal of usage: %w", err)
		}
		used := 0
		for {
			size, err := next(buffer[used:n], &r)
			if err != nil {
				break
			}
			read(&r)
			used += size
		}
		if used == 0 {
			return from, nil
		}
		from += int64(used)
	}
	return from, nil
}

// append writes records; the lock is held. What fails half-way is taken back.
func (j *journal) append(records ...*record) error {
	j.buffer = j.buffer[:0]
	for _, r := range records {
		j.buffer = r.appendTo(j.buffer)
	}
	if _, err := j.file.WriteAt(j.buffer, j.position); err != nil {
		return errors.Join(fmt.Errorf("journal of usage: %w", err), j.file.Truncate(j.position))
	}
	j.position += int64(len(j.buffer))
	j.size = j.position
	return nil
}

// replace puts a new journal in the old one's place; the lock is held.
func (j *journal) replace(generation int64, carried []byte) error {
	content := append([]byte(journalMagic), make([]byte, journalHeader-len(journalMagic))...)
	fields := content[len(journalMagic):]
	binary.LittleEndian.PutUint64(fields, uint64(generation))
	binary.LittleEndian.PutUint64(fields[8:], uint64(journalHeader+len(carried)))
	binary.LittleEndian.PutUint32(fields[16:], crc32.Checksum(content[:journalHeader-4], castagnoli))
	temporary := j.path + ".new"
	if err := writeSynced(temporary, append(content, carried...)); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, j.path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(j.path))
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// follow turns to the file that has the name now. If that is the next
// generation the state stays; a process that missed one reads everything again.
func (j *journal) follow(state *ledgerState) error {
	f, next, err := openHead(j.path)
	if err != nil {
		return err
	}
	if next.generation <= j.head.generation {
		return errors.Join(damaged(j.path, "is older than the one before: its generation is %d, not %d", next.generation, j.head.generation+1), f.Close())
	}
	_ = j.file.Close() // everything in it is in SQLite or was carried over
	j.position = next.carried
	if next.generation != j.head.generation+1 {
		state.forget()
		j.position = int64(journalHeader)
	}
	clear(state.ended)
	j.file, j.head = f, next
	return nil
}

// openHead opens the journal and reads its beginning.
func openHead(path string) (*os.File, head, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, head{}, fmt.Errorf("journal of usage: %w", err)
	}
	h, ok := readHead(f)
	if !ok {
		return nil, head{}, errors.Join(damaged(path, "has no beginning: it is empty, or no journal"), f.Close())
	}
	return f, h, nil
}

// readHead reads the beginning of a journal, or reports that there is none.
func readHead(f io.ReaderAt) (head, bool) {
	b := make([]byte, journalHeader)
	if n, _ := f.ReadAt(b, 0); n < journalHeader {
		return head{}, false
	}
	sum := binary.LittleEndian.Uint32(b[journalHeader-4:])
	if string(b[:len(journalMagic)]) != journalMagic || crc32.Checksum(b[:journalHeader-4], castagnoli) != sum {
		return head{}, false
	}
	fields := b[len(journalMagic):]
	return head{int64(binary.LittleEndian.Uint64(fields)), int64(binary.LittleEndian.Uint64(fields[8:]))}, true
}
