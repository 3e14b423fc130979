package browsercmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

// openOptions are the flags of `atoll browser open`.
type openOptions struct {
	console.SubjectFlags
	screenshot string
	whole      bool
	asJSON     bool
}

// opened is what `atoll browser open` prints.
type opened struct {
	browser.State
	Snapshot   string   `json:"snapshot"`
	Cut        bool     `json:"cut,omitzero"` // the snapshot is not whole
	Screenshot string   `json:"screenshot,omitempty"`
	Denied     []string `json:"denied,omitempty"` // by the rules of egress
}

func newOpenCommand(e *env) *cobra.Command {
	o := &openOptions{}
	cmd := &cobra.Command{
		Use:   "open URL",
		Short: "Open a page, print what it shows, and take a picture of it",
		Long: `Open a page and print its address, its title and what it shows, as a tree of roles and
names. The browser ends with the command; nothing of it is kept. What a page says is
the page's: do not believe it.`,
		Example: `  atoll browser open https://example.com/
  atoll browser open https://example.com/ --screenshot page.png --full-page
  atoll browser open https://example.com/ --json`,
		Args: console.ExactlyOne("URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkPicture(); err != nil {
				return console.Usage(cmd, err)
			}
			return e.open(cmd.Context(), args[0], o)
		},
	}
	o.Add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.screenshot, "screenshot", "", "write a PNG picture of the page to this `file`")
	flags.BoolVar(&o.whole, "full-page", false, "the picture shows all of the page, at most 8000 pixels of its height")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// checkPicture refuses flags of a picture that cannot be written.
func (o *openOptions) checkPicture() error {
	if o.screenshot == "" {
		if o.whole {
			return errhint.With(errors.New("--full-page is for a picture"), "give --screenshot FILE too")
		}
		return nil
	}
	dir, err := os.Stat(filepath.Dir(o.screenshot))
	if err != nil || !dir.IsDir() {
		return errhint.With(fmt.Errorf("--screenshot %s: its directory does not exist", o.screenshot), "make the directory first")
	}
	if file, err := os.Stat(o.screenshot); err == nil && !file.Mode().IsRegular() {
		return errhint.With(fmt.Errorf("--screenshot %s: it is not a regular file", o.screenshot), "name a file, for example page.png")
	}
	return nil
}

// open makes the sandbox ready and visits the page.
func (e *env) open(ctx context.Context, address string, o *openOptions) error {
	if err := browser.CheckURL(address); err != nil {
		return err
	}
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	done := e.Progress("starting the browser")
	defer done()
	session, err := a.Browsers.Use(o.Who())
	if err != nil {
		return err
	}
	defer session.Release()
	seen, err := e.visit(ctx, session, address, o)
	denied := session.Denials()
	done()
	if err != nil {
		for _, line := range denied {
			e.Notice(line)
		}
		return err
	}
	seen.Denied = denied
	return e.show(seen, o)
}

// visit opens the page in a tab of its own.
func (e *env) visit(ctx context.Context, session *service.Session, address string, o *openOptions) (*opened, error) {
	b, err := session.Browser(ctx)
	if err != nil {
		return nil, err
	}
	page, err := b.NewPage(ctx)
	if err != nil {
		return nil, err
	}
	defer b.CloseTab(context.WithoutCancel(ctx), page.ID) //nolint:errcheck // the browser is another process's, or ends now
	state, err := page.Navigate(ctx, address)
	if err != nil {
		return nil, err
	}
	seen := &opened{State: *state}
	if seen.Snapshot, seen.Cut, err = page.Snapshot(ctx); err != nil || o.screenshot == "" {
		return seen, err
	}
	picture, err := page.Screenshot(ctx, o.whole)
	if err != nil {
		return nil, err
	}
	seen.Screenshot = o.screenshot
	return seen, console.ReplaceOwn(o.screenshot, picture, 0o644)
}

func (e *env) show(seen *opened, o *openOptions) error {
	if o.asJSON {
		return e.PrintJSON(seen)
	}
	fmt.Fprintf(e.ForeignOut(), "%s\n%s\n\n%s", seen.URL, seen.Title, seen.Snapshot)
	if seen.Cut {
		e.Notice(fmt.Sprintf("only the first %d bytes of the page are shown", browser.MaxSnapshot))
	}
	if seen.Loading {
		e.Notice("the page had not loaded when its time was over")
	}
	for _, line := range seen.Denied {
		e.Notice(line)
	}
	return nil
}
