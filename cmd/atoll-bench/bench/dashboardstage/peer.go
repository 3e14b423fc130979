package dashboardstage

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// named finds the scripts that a page loads before it is used.
var named = regexp.MustCompile(`(?:<script[^>]*src|<link[^>]*modulepreload[^>]*href)="\.?/?([^"]+\.js)"`)

// peerScripts returns the compressed size of the scripts that OpenClaw's Control UI loads
// first, as its installed package has them.
func peerScripts(ctx context.Context) (float64, error) {
	out, err := exec.CommandContext(ctx, "scripts/openclaw.sh", "dir").Output()
	if err != nil {
		return 0, errhint.With(fmt.Errorf("scripts/openclaw.sh: %w", err), "run this in the repository")
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "node_modules/openclaw/dist/control-ui")
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	if err != nil {
		return 0, errhint.With(err, "run scripts/openclaw.sh up")
	}
	sum := 0
	for _, name := range named.FindAllStringSubmatch(string(page), -1) {
		n, err := compressed(filepath.Join(dir, name[1]))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return float64(sum), nil
}

func compressed(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if _, err := z.Write(text); err != nil {
		return 0, err
	}
	return b.Len(), z.Close()
}
