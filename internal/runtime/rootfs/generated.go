package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// generated returns the layer that holds entries, writing it if it is not there
// yet. Equal entries are one layer, however many sandboxes stand on it.
func (s *Store) generated(ctx context.Context, entries []entry) (layerName, error) {
	sum := sha256.New()
	for _, e := range entries {
		_, _ = sum.Write([]byte(e.line()))
	}
	name := layerName("generated-" + hex.EncodeToString(sum.Sum(nil)))
	if s.hasLayer(name) {
		return name, nil
	}
	temp, err := s.temporary()
	if err != nil {
		return "", err
	}
	defer removeTree(temp)
	for _, e := range entries {
		if err := errors.Join(ctx.Err(), e.write(filepath.Join(temp, layerFiles))); err != nil {
			return "", err
		}
	}
	return name, s.publish(temp, name)
}

// write makes the entry below a directory of this process.
func (e entry) write(root string) error {
	path := filepath.Join(root, e.path)
	switch e.mode.Type() {
	case fs.ModeDir:
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
	case fs.ModeSymlink:
		return os.Symlink(e.data, path)
	default:
		if err := os.WriteFile(path, []byte(e.data), 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(path, e.mode&^fs.ModeDir) // whatever the umask is
}
