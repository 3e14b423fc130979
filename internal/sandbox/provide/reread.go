package provide

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
)

// Stamp describes the files that the configuration is read from as they are now. Another
// one than before means that there is something to read again.
func (s *Settings) Stamp() string { return stampOf(s.environment) }

// Stamped is the stamp of what was read.
func (s *Settings) Stamped() string { return s.stamp }

// Reread finds and reads the configuration again, for the same directory.
func (s *Settings) Reread() (*Settings, error) { return load(s.environment, s.Runtimes) }

func stampOf(env config.Environment) string {
	var b strings.Builder
	own, err := config.Find(env)
	if err != nil {
		b.WriteString(err.Error())
	}
	for _, path := range []string{own.Path, filepath.Join(env.Cwd, trust.FileName)} {
		info, err := os.Stat(path)
		if err != nil {
			fmt.Fprintf(&b, "%s\n", path)
			continue
		}
		fmt.Fprintf(&b, "%s %d %d %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
	}
	return b.String()
}
