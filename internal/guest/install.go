package guest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// The modes of what Install makes. Every user may run the guest and none read it: a
// program that its user cannot read is not dumpable, so nothing in the sandbox can trace it.
const (
	installedMode = 0o111
	wireMode      = 0o777
)

// Install copies this program into dir, for a container that will run it as process 1, and
// makes the directory that the volume of its socket is mounted on.
func Install(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, "wire"), wireMode); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	target := filepath.Join(dir, "guest")
	if err := copySelf(target + ".new"); err != nil {
		return err
	}
	return os.Rename(target+".new", target)
}

// copySelf copies this program to a new file.
func copySelf(path string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, self)
	return errors.Join(err, file.Chmod(installedMode), file.Close())
}
