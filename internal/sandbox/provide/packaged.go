package provide

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/runtime/rootfs/packages"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// packagedName is the image that is made of this machine's packages; its tag is the
// fingerprint of the machine's programs.
const packagedName = "atoll-packages"

// hostAccountFact names the account whose sandboxes are made of the host's programs.
const hostAccountFact = "host-programs.account"

// ImportHost makes an image of the packages that are installed on this machine, for
// sandboxes that need no engine. "" names it after the state of the machine.
func (s *Settings) ImportHost(ctx context.Context, o rootfs.AddOptions) (*rootfs.Image, error) {
	if err := packages.Available(s.PackageRoot); err != nil {
		return nil, err
	}
	store, err := s.images()
	if err != nil {
		return nil, err
	}
	if o.Name == "" {
		if o.Name, err = s.packagedImage(); err != nil {
			return nil, err
		}
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(packages.Write(ctx, w, s.PackageRoot)) }()
	defer r.Close()
	images, err := store.ImportFrom(ctx, r, "the packages of this machine", o)
	if err != nil {
		return nil, err
	}
	return images[0], nil
}

// packagedImage is the name of the image for this machine as it is now.
func (s *Settings) packagedImage() (string, error) {
	id, err := rootfs.HostID(s.hidden()...)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(id))
	return packagedName + ":" + hex.EncodeToString(sum[:6]), nil
}

// mayShowHost reports whether an account's sandboxes are made of the host's programs.
// That is the owner's, who has no account, and the first account that used a gateway;
// those that come later have an image.
func (a *Installation) mayShowHost(ctx context.Context, account string) (bool, error) {
	if a.shared == nil || account == "" {
		return true, nil
	}
	holder, err := a.Registry.Fact(ctx, hostAccountFact)
	if err == nil && holder == "" && !a.isShared() {
		holder, err = a.Registry.ClaimFact(ctx, hostAccountFact, account)
	}
	return holder == account, err
}

// fitShared finishes a plan of the linux backend for an account that is not shown the
// host's programs.
func (a *Installation) fitShared(ctx context.Context, p *plan.Plan) error {
	if p.Spec.Backend != BackendLinux || !a.showsHost(ctx, p.Spec.Image) {
		return nil
	}
	if may, err := a.mayShowHost(ctx, p.Spec.Account); may || err != nil {
		return err
	}
	if !rootfs.IsHost(p.Spec.Image) {
		err := fmt.Errorf("the image %s lies on the host's own programs", p.Spec.Image)
		a.hostRefused(ctx, p.Spec.Account, err)
		return errhint.With(fmt.Errorf("%w: %w", errShared, err), "build the image with --base-image, on an image of its own")
	}
	image, err := a.ensurePackaged(ctx)
	if err != nil {
		a.hostRefused(ctx, p.Spec.Account, err)
		return errhint.With(fmt.Errorf("%w: %w", errShared, err), errhint.Of(err))
	}
	setRoot(p, rootfs.ShortName(image.Names[0]), image.ID)
	return nil
}

// showsHost reports whether sandboxes of an image see the host's own programs.
func (s *Settings) showsHost(ctx context.Context, image string) bool {
	if rootfs.IsHost(image) {
		return true
	}
	found := s.ImportedImage(ctx, image)
	return found != nil && found.OnHost
}

// ensurePackaged returns the image of this machine's packages, made if it is not there.
// One process makes it.
func (a *Installation) ensurePackaged(ctx context.Context) (*rootfs.Image, error) {
	name, err := a.packagedImage()
	if err != nil {
		return nil, err
	}
	if image := a.ImportedImage(ctx, name); image != nil {
		return image, nil
	}
	lock, err := a.Locks.Hold(ctx, "packaged image")
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	if image := a.ImportedImage(ctx, name); image != nil {
		return image, nil
	}
	a.Logger.InfoContext(ctx, "making an image of this machine's packages for accounts that are not shown the host's programs", "image", name)
	image, err := a.ImportHost(ctx, rootfs.AddOptions{Name: name})
	if err == nil {
		a.dropOldPackaged(ctx, name)
	}
	return image, err
}

// dropOldPackaged removes images of states that the machine no longer has. Sandboxes
// keep what they stand on.
func (a *Installation) dropOldPackaged(ctx context.Context, current string) {
	store, err := a.images()
	if err != nil {
		return
	}
	all, err := store.List(ctx)
	if err != nil {
		return
	}
	for _, image := range all {
		for _, name := range image.Names {
			if short := rootfs.ShortName(name); strings.HasPrefix(short, packagedName+":") && short != current {
				_, _ = store.Remove(ctx, short) // it is tried again with the next image
			}
		}
	}
}

// LogRoots says at the start of a gateway what sandboxes of the default agent are
// made of, and what is missing for a second account.
func (a *Installation) LogRoots(ctx context.Context) {
	p, err := a.Plan(Subject{})
	if err != nil || !UsesHostPrograms(p.Agent) || a.Backend(ctx, p, "").Effective != BackendLinux {
		return
	}
	if err := packages.Available(a.PackageRoot); err != nil {
		a.Logger.WarnContext(ctx, "sandboxes are made of the host's own programs, for one account only: there is no image for further ones", "error", err, "hint", errhint.Of(err))
		return
	}
	a.Logger.InfoContext(ctx, "sandboxes are made of the host's own programs for the first account; those of further accounts have an image of this machine's packages, made when it is first needed",
		"hint", "set sandbox.docker.image to choose another")
}

// hostRefused logs and counts a caller who can be given no sandbox.
func (a *Installation) hostRefused(ctx context.Context, account string, err error) {
	a.Logger.WarnContext(ctx, "an account has no sandbox: there is no image for it, and the host's programs are another's", "account", account, "error", err, "hint", errhint.Of(err))
	if a.RefusedAccounts != nil {
		a.RefusedAccounts.With().Inc()
	}
}
