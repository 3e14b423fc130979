package rootfs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNoAccount is a user or a group that an image does not know.
var ErrNoAccount = errors.New("no matching entries")

// maxAccounts bounds what is read of an image's list of users, or of groups.
const maxAccounts = 1 << 20

// Account turns "user[:group]", as images and people write it, into numbers by
// the lists in the image. A user without a group gets the one of its entry; a
// number that no entry has is taken as it is, in group 0.
func (s *Store) Account(ctx context.Context, ref, user string) (uid, gid int, err error) {
	held, err := s.locks.Share(ctx, contentLock)
	if err != nil {
		return 0, 0, fmt.Errorf("image store: %w", err)
	}
	defer held.Release()
	record, err := s.find(ref)
	if err != nil {
		return 0, 0, err
	}
	name, group, hasGroup := strings.Cut(user, ":")
	entry := s.account(record.lowers(), "etc/passwd", name)
	if uid, err = number(name, entry); err != nil {
		return 0, 0, fmt.Errorf("unable to find user %s: %w in passwd file", name, err)
	}
	switch {
	case hasGroup:
		if gid, err = number(group, s.account(record.lowers(), "etc/group", group)); err != nil {
			return 0, 0, fmt.Errorf("unable to find group %s: %w in group file", group, err)
		}
	case len(entry) > 3:
		gid, _ = strconv.Atoi(entry[3])
	}
	return uid, max(gid, 0), nil
}

// number is that of an entry, or the text itself if it is one.
func number(text string, entry []string) (int, error) {
	if len(entry) > 2 {
		text = entry[2]
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, ErrNoAccount
	}
	return int(n), nil
}

// account looks a name or a number up in a list of layers laid over each other.
func (s *Store) account(layers []layerName, list, asked string) []string {
	for _, l := range layers {
		root, err := os.OpenRoot(filepath.Join(s.layer(l), layerFiles))
		if err != nil {
			continue
		}
		entry, found := lookUp(root, list, asked)
		_ = root.Close()
		if found {
			return entry
		}
	}
	return nil
}

// lookUp reads one layer's list; found says that the layer has one.
func lookUp(root *os.Root, list, asked string) (entry []string, found bool) {
	info, err := root.Lstat(list)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	file, err := root.Open(list)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(io.LimitReader(file, maxAccounts)); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) > 2 && (fields[0] == asked || fields[2] == asked) {
			return fields, true
		}
	}
	return nil, true
}
