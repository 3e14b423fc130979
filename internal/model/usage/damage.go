package usage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrDamaged means that the journal is not the one that the database follows: it
// lost its end, holds what no process wrote, or is older.
var ErrDamaged = errors.New("the journal of usage is damaged")

// repairCommand is the command for a journal that is damaged.
const repairCommand = "atoll billing repair sets it aside, keeps every call in it that can be read, and begins a new one"

func damaged(path, format string, args ...any) error {
	return errhint.With(fmt.Errorf("%w: %s %s", ErrDamaged, path, fmt.Sprintf(format, args...)), repairCommand)
}

// Check compares the journal in a directory with the database. It changes nothing
// and needs no lock: the journal is ahead of the database at any moment.
func Check(ctx context.Context, o *Options) error {
	at, err := readPos(ctx, o.DB)
	if err != nil {
		return o.DB.Explain(err)
	}
	path := journalPath(o.Dir)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil // a new one is made when it is needed
	}
	return checkFile(path, at)
}

// checkFile reports whether what is stored up to a position is in the journal.
func checkFile(path string, at journalPos) error {
	f, head, err := openHead(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case head.generation < at.generation:
		return damaged(path, "is older than the database: its generation is %d, not %d; an old copy was restored", head.generation, at.generation)
	case head.generation > at.generation+1:
		return damaged(path, "is newer than the database: its generation is %d, not %d; an old database was restored", head.generation, at.generation)
	case head.generation < at.generation+1 && info.Size() < at.position:
		return damaged(path, "ends at byte %d, before byte %d, up to which the database follows it", info.Size(), at.position)
	}
	return checkFrames(f, path, at.in(head.generation))
}

// checkFrames reports whether whole records end exactly at a position.
func checkFrames(f io.ReaderAt, path string, end int64) error {
	content := make([]byte, max(end-int64(journalHeader), 0))
	if _, err := f.ReadAt(content, int64(journalHeader)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("journal of usage: %w", err)
	}
	for used := 0; used < len(content); {
		size := frame(content[used:])
		if size == 0 {
			return damaged(path, "has no whole record at byte %d", journalHeader+used)
		}
		used += size
	}
	return nil
}

// frame returns the length of the first record of b; 0 if it is not whole.
func frame(b []byte) int {
	if len(b) < frameHead {
		return 0
	}
	size := binary.LittleEndian.Uint32(b)
	if size > maxRecord || int(size) > len(b)-frameHead {
		return 0
	}
	if crc32.Checksum(b[frameHead:frameHead+int(size)], castagnoli) != binary.LittleEndian.Uint32(b[4:]) {
		return 0
	}
	return frameHead + int(size)
}
