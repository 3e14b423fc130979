package actions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// File is a file that came out of the browser.
type File struct {
	Name   string // as the page named it, cleaned
	Path   string // in the workspace; "" if it was not put there
	Type   string // found by its first bytes
	Bytes  int64
	SHA256 string
	Note   string // why it was not put there
}

// Files moves files between the browser's sandbox and the workspace.
type Files interface {
	// Save puts bytes into the workspace and returns the path there.
	Save(ctx context.Context, name string, data []byte) (string, error)
	// Stage copies files of the workspace to the browser's sandbox and returns the paths there.
	Stage(ctx context.Context, paths []string) ([]string, error)
	// New returns the downloads that have ended since the last time, All every one.
	New(ctx context.Context) []File
	All() []File
}

// Handover asks a person to go on in place of the agent.
type Handover interface {
	// Ask waits until the person is done; an error if the answer is no or nobody answers.
	Ask(ctx context.Context, reason, url string) error
}

var errNoFiles = errhint.With(errors.New("files cannot be moved in this session"), "use an agent with a workspace")

// save puts bytes into the workspace.
func (c *call) save(ctx context.Context, name string, data []byte) (string, error) {
	if c.options.Files == nil {
		return "", errNoFiles
	}
	return c.options.Files.Save(ctx, name, data)
}

// upload has an element take files of the workspace.
func (c *call) upload(ctx context.Context) error {
	if c.options.Files == nil {
		return errNoFiles
	}
	staged, err := c.options.Files.Stage(ctx, c.args.Paths)
	if err != nil {
		return err
	}
	if err := c.page.Settle(ctx, func() error { return c.page.SetFiles(ctx, c.args.Ref, staged) }); err != nil {
		return err
	}
	c.note("%d files were chosen", len(staged))
	return c.changes(ctx)
}

// downloads lists the files that pages have offered.
func (c *call) downloads(ctx context.Context) error {
	c.noteDownloads(ctx)
	if c.options.Files == nil {
		return errNoFiles
	}
	all := c.options.Files.All()
	c.notes = nil
	c.note("%d downloads", len(all))
	for _, f := range all {
		c.note("%s", f)
	}
	return nil
}

// noteDownloads tells of downloads that have ended.
func (c *call) noteDownloads(ctx context.Context) {
	if c.options.Files == nil {
		return
	}
	for _, f := range c.options.Files.New(ctx) {
		c.note("download %s", f)
	}
}

// String describes a file in one line.
func (f File) String() string {
	text := fmt.Sprintf("%q, %s, %d bytes, sha256 %s", f.Name, f.Type, f.Bytes, f.SHA256)
	if f.Path != "" {
		return text + ": " + f.Path
	}
	return text + ": not kept: " + f.Note
}

// handoverEnds is how long a person may take.
const handoverEnds = 15 * time.Minute

// handover has a person go on, and shows the page afterwards. What the person types is
// not seen.
func (c *call) handover(ctx context.Context) error {
	if c.options.Handover == nil {
		return errors.New("nobody can be asked in this session")
	}
	state, err := c.page.State(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, handoverEnds)
	defer cancel()
	if err := c.ask(ctx, state.URL); err != nil {
		return err
	}
	c.note("the person is done")
	return c.changes(ctx)
}

// ask lets the person have the browser until the answer, and takes it back.
func (c *call) ask(ctx context.Context, url string) error {
	c.driver.asked.Store(true)
	defer c.driver.asked.Store(false)
	c.end()
	c.end = func() {}
	if err := c.options.Handover.Ask(ctx, c.args.Reason, url); err != nil {
		return err
	}
	end, err := c.driver.drivers.Act(c.driver.sandbox)
	if err == nil {
		c.end = end
	}
	return err
}
