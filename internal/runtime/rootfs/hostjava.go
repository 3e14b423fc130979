package rootfs

import (
	"io/fs"
	"path/filepath"
)

// javaSettings are the directories that Debian keeps the settings of a Java of /usr
// in: it does not start without them.
const javaSettings = "/etc/java-*-openjdk"

// javaStore has the certificates that Java trusts, as ca-certificates-java writes it.
const javaStore = "/etc/ssl/certs/java/cacerts"

// maxJavaFiles bounds the files of the settings of one Java. More are not shown.
const maxJavaFiles = 1000

// addJava shows what the Java of the host needs of /etc: settings that its package
// brings, and certificates of public authorities.
func (v *hostView) addJava() {
	found, _ := filepath.Glob(v.real(javaSettings)) // the pattern is valid
	for _, dir := range found {
		private, ok := privateFiles(dir)
		if target := filepath.Join("/etc", filepath.Base(dir)); ok && v.addPublic(target, target) {
			for _, name := range private {
				v.masks = append(v.masks, filepath.Join(target, name))
			}
		}
	}
	if _, info, ok := v.public(javaStore); ok && info.Mode().IsRegular() {
		v.entries = append(v.entries, dir("etc/ssl/certs/java"))
		v.addPublic(javaStore, javaStore)
	}
}

// privateFiles returns what not everybody on the host may read of a directory, such as
// a password of remote management: that is covered. It is not ok if there is too much
// to look at, or if something cannot be looked at.
func privateFiles(dir string) (names []string, ok bool) {
	count := 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if count++; err != nil || count > maxJavaFiles {
			return fs.ErrInvalid
		}
		info, err := entry.Info()
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		if isReadable(info) {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		if err == nil && entry.IsDir() {
			return fs.SkipDir
		}
		return err
	})
	return names, err == nil
}

// isReadable reports whether everybody may read a file, or list a directory and enter it.
func isReadable(info fs.FileInfo) bool {
	if info.IsDir() {
		return info.Mode().Perm()&0o005 == 0o005
	}
	return info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}
