package provide

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// hideFrom decides which files of an overlay's base a sandbox does not see:
// credentials in repositories, files whose use is to hold secrets, and small files in
// which the scanner finds a secret. Files that git tracks are visible. It logs
// how many files were beyond the bounds of a scan; log may be nil.
func hideFrom(p *plan.Plan, mount policy.Mount, log *slog.Logger) overlay.HideFunc {
	decide := coverOf(p, mount)
	return func(ctx context.Context, walk func(look func(overlay.Candidate)) error) (map[string]overlay.Cover, error) {
		covers, secrets, tracked := map[string]overlay.Cover{}, newSecretScan(ctx), trackedIn(mount)
		defer secrets.stop()
		err := walk(func(c overlay.Candidate) {
			if cover := decide(c, tracked); cover.Hide {
				covers[c.Path] = cover
			} else if mount.Kind != policy.MountGit && isScanned(c) && !tracked()[c.Path] {
				secrets.add(c)
			}
		})
		if err != nil {
			return nil, err
		}
		found, err := secrets.finish()
		for _, path := range found {
			covers[path] = overlay.Cover{Hide: true}
		}
		secrets.warn(log, mount.Source)
		return covers, err
	}
}

// coverOf decides about one file, by its name and for some names by what is in it.
func coverOf(p *plan.Plan, mount policy.Mount) func(c overlay.Candidate, tracked func() map[string]bool) overlay.Cover {
	repository := p.Repository()
	if repository == nil {
		repository = checkout.InsideOf(mount.Source, mount.Target)
	}
	view := repository.WorkTree
	switch mount.Kind {
	case policy.MountGit:
		view = repository.GitFile
	case policy.MountTree:
		view = checkout.InsideOf(mount.Source, mount.Target).WorkTree
	}
	return func(c overlay.Candidate, tracked func() map[string]bool) overlay.Cover {
		read := func(limit int64) ([]byte, error) { return readCandidate(c, limit) }
		seen, err := view(c.Path, read)
		if err != nil {
			return overlay.Cover{Hide: true} // what cannot be read as it should is not shown
		}
		return overlay.Cover{Hide: seen.Hidden || holdsSecret(c.Path, c.Size, read) && !tracked()[c.Path], Instead: seen.Instead}
	}
}

// trackedIn returns the files of a repository's index. They are in its history for
// everybody to see, and without them git inside would tell of deletions.
func trackedIn(mount policy.Mount) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		if found, err := checkout.At(mount.Source); err == nil && mount.Kind != policy.MountGit {
			return found.Tracked()
		}
		return nil
	})
}

// readCandidate reads all of a file of at most limit bytes.
func readCandidate(c overlay.Candidate, limit int64) ([]byte, error) {
	file, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%.300q has more than %d bytes", c.Path, limit)
	}
	return text, err
}

// maxSecret bounds a file that is read to find out whether it holds a secret;
// keys and settings are smaller.
const maxSecret = 64 << 10

// holdsSecret reports whether a file is one that holds secrets: by its name, or by
// its name and what is in it. One that cannot be read does.
func holdsSecret(name string, size int64, read checkout.ReadFunc) bool {
	base := strings.ToLower(path.Base(name))
	if isEnvironment(base) || slices.Contains(secretNames(), base) {
		return true
	}
	marks := secretMarks(base)
	if len(marks) == 0 || size > maxSecret {
		return false
	}
	text, err := read(maxSecret)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(marks, func(mark string) bool { return bytes.Contains(bytes.ToLower(text), []byte(mark)) })
}

// isEnvironment reports whether a file has the variables of a program, as .env
// does, and is no example of one.
func isEnvironment(base string) bool {
	if base != ".env" && !strings.HasPrefix(base, ".env.") && !strings.HasPrefix(base, ".envrc.") && base != ".dev.vars" {
		return false
	}
	for _, word := range []string{"example", "sample", "template", "dist", "defaults", "schema"} {
		if strings.Contains(base, "."+word) {
			return false
		}
	}
	return true
}

// secretNames are files that hold nothing but secrets.
func secretNames() []string {
	return []string{
		".git-credentials", ".netrc", "_netrc", ".pgpass", ".htpasswd", ".vault-token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "kubeconfig", "credentials.json", "service-account.json", ".terraformrc", "terraform.tfstate", "secrets.yml", "secrets.yaml", "secrets.json",
	}
}

// secretMarks are parts of a text, in lower case, that make a file with this name
// one that holds a secret.
func secretMarks(base string) []string {
	switch base {
	case ".npmrc", ".yarnrc.yml", ".pypirc", "pip.conf", "nuget.config", "gradle.properties":
		return []string{"_auth", "_password", "password", "token"}
	case "config.json", ".dockercfg":
		return []string{`"auths"`}
	case "credentials", "credentials.toml":
		return []string{"key", "token", "password"}
	}
	switch path.Ext(base) {
	case ".pem", ".key", ".p8", ".asc", ".ppk":
		return []string{"private key", "private-lines"}
	case ".p12", ".pfx", ".jks", ".keystore", ".kdbx":
		return []string{""} // whatever is in it
	}
	return nil
}
