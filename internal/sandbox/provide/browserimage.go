package provide

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// BrowserImageError is the error of an image that no browser can be started from, in the
// words that users of OpenClaw know.
type BrowserImageError struct {
	Image    string
	IsThere  bool
	Contract string // of an image that is there
}

func (e *BrowserImageError) Error() string {
	if !e.IsThere {
		return fmt.Sprintf("Sandbox browser image not found: %.200s. Build it with scripts/sandbox-browser-setup.sh.", e.Image)
	}
	return fmt.Sprintf("Sandbox browser image %.200s is stale or incompatible (contract=%.50s, expected=%s). Rebuild it with scripts/sandbox-browser-setup.sh.",
		e.Image, cmp.Or(e.Contract, "missing"), image.BrowserContract)
}

// Is makes it sandbox.ErrNoImage if the image is not there.
func (e *BrowserImageError) Is(target error) bool { return target == sandbox.ErrNoImage && !e.IsThere }

// buildBrowser is the command that makes the image on a backend.
func buildBrowser(backend string) string {
	text := "build it: `atoll images build browser"
	if backend != "" && backend != BackendLinux {
		text += " --backend " + backend
	}
	return text + "`"
}

// checkBrowserImage refuses an image that is not there or was not made for browsers. The
// programs of this machine are no image.
func (a *Installation) checkBrowserImage(ctx context.Context, b *plan.Plan) error {
	if b.Spec.Backend == BackendLinux && UsesHostPrograms(b.Agent) {
		return nil
	}
	labels, err := a.imageLabels(ctx, b.Spec)
	switch {
	case isMissing(err):
		return errhint.With(&BrowserImageError{Image: b.Spec.Image}, buildBrowser(b.Spec.Backend))
	case err != nil:
		return err
	case labels[image.LabelBrowserContract] != image.BrowserContract:
		found := &BrowserImageError{Image: b.Spec.Image, IsThere: true, Contract: labels[image.LabelBrowserContract]}
		return errhint.With(found, buildBrowser(b.Spec.Backend))
	}
	return nil
}

// imageLabels returns the labels of a sandbox's image.
func (a *Installation) imageLabels(ctx context.Context, spec *sandbox.Spec) (map[string]string, error) {
	if spec.Backend == BackendLinux {
		found := a.ImportedImage(ctx, spec.Image)
		if found == nil {
			return nil, sandbox.ErrNoImage
		}
		return found.Config.Labels, nil
	}
	engine, err := a.Engine(ctx, spec.Backend)
	if err != nil {
		return nil, err
	}
	info, err := engine.ImageInfo(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	return info.Labels, nil
}

// imageProblem says of a plan whose backend could not be chosen that its image is missing,
// if that is why.
func imageProblem(b *plan.Plan, err error) error {
	if _, known := errors.AsType[*BrowserImageError](err); known || !isMissing(err) {
		return err
	}
	return errhint.With(&BrowserImageError{Image: b.Spec.Image}, buildBrowser(b.Spec.Backend))
}
