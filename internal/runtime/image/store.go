package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	recipeStore = "pnpm-store"
	// LabelLockfile holds, on a store of packages, the SHA-256 of its lockfile.
	LabelLockfile = "atoll.lockfile"
	// StoreVolume is the volume that holds the packages of pnpm.
	StoreVolume = "pnpm_store"
	// StorePath is where the packages are in the image of a store, and where
	// sandboxes have them.
	StorePath = "/pnpm-store"
	// MaxLockfile bounds a lockfile: the largest known ones have a few MiB.
	MaxLockfile = 32 << 20
)

// StoreReference names the image that holds the packages of a lockfile. Equal
// lockfiles have equal names.
func StoreReference(lockfile []byte) string { return recipeStore + ":" + lockfileHash(lockfile)[:16] }

func lockfileHash(lockfile []byte) string {
	sum := sha256.Sum256(lockfile)
	return hex.EncodeToString(sum[:])
}

// LabelBrowserContract is the label by which OpenClaw knows an image for browsers, and
// BrowserContract the value that it wants.
const (
	LabelBrowserContract = "org.openclaw.sandbox-browser.contract"
	BrowserContract      = "2026-05-12-cdp-relay-auth"
)

// recipeBrowser is the recipe of browsers.
const recipeBrowser = "browser"

// Labels returns the labels of a recipe's image.
func Labels(recipe string, lockfile []byte) map[string]string {
	all := map[string]string{LabelRecipe: recipe}
	if recipe == recipeBrowser {
		all[LabelBrowserContract], all["io.atoll.browser"] = BrowserContract, "1"
	}
	if len(lockfile) > 0 {
		all[LabelLockfile] = lockfileHash(lockfile)
	}
	return all
}

// CheckLockfile wants a lockfile exactly where one is of use.
func CheckLockfile(recipe Recipe, lockfile []byte) error {
	switch {
	case recipe.Name != recipeStore && len(lockfile) > 0:
		return fmt.Errorf("image %s: it has no use for a lockfile", recipe.Name)
	case recipe.Name == recipeStore && len(lockfile) == 0:
		return errhint.With(errors.New("image pnpm-store: no lockfile"), "name a pnpm-lock.yaml with --lockfile")
	case len(lockfile) > MaxLockfile:
		return fmt.Errorf("image pnpm-store: the lockfile has %d bytes, more than %d", len(lockfile), MaxLockfile)
	case len(lockfile) > 0 && !bytes.Contains(lockfile, []byte("lockfileVersion:")):
		return errors.New("image pnpm-store: the lockfile is not one of pnpm's: it names no lockfileVersion")
	}
	return nil
}
