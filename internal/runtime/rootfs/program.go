package rootfs

import (
	"context"
	"os"
	"path/filepath"
)

// programDirs are the directories that programs are looked for in.
var programDirs = []string{"usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"}

// HasProgram reports whether an image has a program in one of the usual directories. For
// HostName the host's own are looked at.
func (s *Store) HasProgram(ctx context.Context, image, program string) (bool, error) {
	if IsHost(image) {
		return hasProgram("/", program), nil
	}
	found, err := s.Find(ctx, image)
	if err != nil {
		return false, err
	}
	if found.OnHost && hasProgram("/", program) {
		return true, nil
	}
	for _, layer := range found.lowers() {
		if hasProgram(filepath.Join(s.layer(layer), layerFiles), program) {
			return true, nil
		}
	}
	return false, nil
}

func hasProgram(root, program string) bool {
	for _, dir := range programDirs {
		if _, err := os.Lstat(filepath.Join(root, dir, program)); err == nil {
			return true
		}
	}
	return false
}
