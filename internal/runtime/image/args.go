package image

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The parameters that recipes share, as the environment names them.
const (
	ArgBaseImage   = "BASE_IMAGE"
	ArgPackages    = "PACKAGES"
	ArgInstallPnpm = "INSTALL_PNPM"
	ArgInstallBun  = "INSTALL_BUN"
	ArgInstallBrew = "INSTALL_BREW"
	ArgFinalUser   = "FINAL_USER"
	// ArgOpenClawBase is the published image that OpenClaw is taken from.
	ArgOpenClawBase = "OPENCLAW_BASE"
	// ArgRegistry is where packages of npm come from.
	ArgRegistry = "NPM_REGISTRY"
)

// checks says what a parameter's value may be. They guard against mistakes, and
// against a value that a Dockerfile would take for more than a value.
func checks() map[string]func(string) error {
	return map[string]func(string) error{
		ArgBaseImage:    checkReference,
		ArgPackages:     checkPackages,
		ArgInstallPnpm:  checkSwitch,
		ArgInstallBun:   checkSwitch,
		ArgInstallBrew:  checkSwitch,
		ArgFinalUser:    checkUser,
		ArgOpenClawBase: checkPublished,
		ArgRegistry:     checkRegistry,
		"PNPM_VERSION":  checkVersion,
		"PNPM_SHA512":   checkHash,
		"BUN_VERSION":   checkVersion,
	}
}

var (
	referenceForm = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`)
	packageForm   = lazyregexp.New(`^[a-z0-9][a-z0-9+.-]*(:[a-z0-9-]+)?([=/][a-zA-Z0-9.+:~-]+)?$`)
	userForm      = lazyregexp.New(`^[a-z_][a-z0-9_-]{0,31}$`)
	versionForm   = lazyregexp.New(`^[a-z0-9][a-z0-9.+-]*$`)
	registryForm  = lazyregexp.New(`^https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~/-]*)?$`)
	hashForm      = lazyregexp.New(`^[0-9a-f]{128}$`)
	publishedForm = lazyregexp.New(`^[a-z0-9-]+[.:][a-z0-9.:-]+/[a-z0-9._/-]+(:[A-Za-z0-9._-]+|@sha256:[0-9a-f]{64})$`)
)

func checkReference(s string) error {
	return match(s, referenceForm, "an image reference such as debian:bookworm-slim")
}

func checkUser(s string) error { return match(s, userForm, "the name of a user such as sandbox") }

func checkVersion(s string) error { return match(s, versionForm, "a version such as 10 or latest") }

func checkHash(s string) error { return match(s, hashForm, "a SHA-512 in hexadecimal digits") }

// checkPublished returns an error unless a reference names a registry and a version: an
// image built on this machine could not be told from the published one afterwards.
func checkPublished(s string) error {
	if err := match(s, publishedForm, "a published image such as ghcr.io/openclaw/openclaw:2026.9.6"); err != nil {
		return err
	}
	if strings.HasSuffix(s, ":local") {
		return fmt.Errorf("%q is not published, it was built somewhere", s)
	}
	return nil
}

// checkRegistry wants an address without a password: it stays in the history of
// the image.
func checkRegistry(s string) error {
	return match(s, registryForm, "the address of a registry such as https://npm.example.com/")
}

func checkSwitch(s string) error {
	if s != "0" && s != "1" {
		return fmt.Errorf("%q is neither 0 nor 1", s)
	}
	return nil
}

func checkPackages(s string) error {
	for name := range strings.FieldsSeq(s) {
		if err := match(name, packageForm, "the name of a Debian package"); err != nil {
			return err
		}
	}
	return nil
}

func match(s string, form *lazyregexp.Pattern, what string) error {
	if !form.MatchString(s) {
		return fmt.Errorf("%q is not %s", s, what)
	}
	return nil
}

// arguments puts what was asked over the recipe's defaults; empty values count
// as not asked. All errors are reported at once.
func (r Recipe) arguments(asked map[string]string) (map[string]string, error) {
	args, err := r.Defaults()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		value := asked[name]
		if value == "" {
			continue
		}
		if _, known := args[name]; !known {
			hint := "it has " + join(slices.Sorted(maps.Keys(args)))
			errs = append(errs, errhint.With(fmt.Errorf("image %s: no parameter %s", r.Name, name), hint))
			continue
		}
		if check := checks()[name]; check != nil {
			if err := check(value); err != nil {
				errs = append(errs, fmt.Errorf("image %s: %s: %w", r.Name, name, err))
			}
		}
		args[name] = value
	}
	return args, errors.Join(errs...)
}
