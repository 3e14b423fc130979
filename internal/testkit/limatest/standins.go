//go:build linux

package limatest

import (
	"embed"
	"os"
	"path/filepath"
)

const (
	standInDir = "/opt/limatest" // inside
	searchPath = standInDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// standIns are the programs inside that only check and note what they were asked.
//
//go:embed standins
var standIns embed.FS

// copyStandIns puts the stand-ins into a directory.
func copyStandIns(dir string) error {
	entries, err := standIns.ReadDir("standins")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		text, err := standIns.ReadFile("standins/" + e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}
