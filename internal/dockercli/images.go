package dockercli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/dockercli/dockerformat"
)

// imageRow is one line of `docker images`, by the names that formats use.
type imageRow struct {
	Repository, Tag, Digest, ID, CreatedSince, CreatedAt, Size string
}

func (c *cli) imagesVerb() *verb {
	var quiet, whole, all, digests bool
	var format string
	var filters []filter
	return &verb{usage: " [OPTIONS] [REPOSITORY[:TAG]]", most: 1,
		flags: func(f *flagSet) {
			f.boolean(&quiet, "quiet", "q")
			f.boolean(&whole, "no-trunc", "")
			f.boolean(&all, "all", "a")
			f.text(&format, "format", "")
			f.boolean(&digests, "digests", "")
			f.filters(&filters)
			f.refuse(whyNoVerb, "tree!")
		},
		run: func(ctx context.Context, args []string) error {
			images, err := c.images.Images(ctx)
			if err != nil {
				return err
			}
			rows, err := imageRows(images, args, filters, whole)
			switch {
			case err != nil:
				return err
			case quiet:
				return c.printIDs(rows)
			}
			return dockerformat.PrintTable(c.Out, format, rows, imageColumns(digests), imageHeads())
		}}
}

// printIDs prints the id of every image once, however many names it has.
func (c *cli) printIDs(rows []imageRow) error {
	seen := map[string]bool{}
	for _, row := range rows {
		if !seen[row.ID] {
			fmt.Fprintln(c.Out, row.ID)
		}
		seen[row.ID] = true
	}
	return nil
}

func imageColumns(digests bool) string {
	if digests {
		return "table {{.Repository}}\t{{.Tag}}\t{{.Digest}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}"
	}
	return "table {{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}"
}

func imageHeads() map[string]string {
	return map[string]string{"Repository": "REPOSITORY", "Tag": "TAG", "ID": "IMAGE ID", "CreatedSince": "CREATED", "CreatedAt": "CREATED AT",
		"Size": "SIZE", "Digest": "DIGEST"}
}

func imageRows(images []*Image, wanted []string, filters []filter, whole bool) ([]imageRow, error) {
	rows := []imageRow{}
	if _, err := matchesAll(filters, func(f filter) (bool, error) { return matchesImage(&Image{}, "none:none", f) }); err != nil {
		return nil, err // filters are wrong also where there is nothing to filter
	}
	for _, image := range images {
		tags := image.Tags
		if len(tags) == 0 {
			tags = []string{"<none>:<none>"}
		}
		for _, ref := range tags {
			shown, err := matchesAll(filters, func(f filter) (bool, error) { return matchesImage(image, ref, f) })
			if err != nil {
				return nil, err
			}
			row := imageRowOf(image, ref, whole)
			if shown && (len(wanted) == 0 || shortReference(wanted[0]) == row.Repository || shortReference(wanted[0]) == ref) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func imageRowOf(image *Image, ref string, whole bool) imageRow {
	at := strings.LastIndexByte(ref, ':')
	row := imageRow{Repository: ref[:at], Tag: ref[at+1:], Digest: "<none>", ID: image.ID, Size: dockerformat.SizeText(image.Size)}
	if !whole {
		row.ID = strings.TrimPrefix(image.ID, "sha256:")
		row.ID = row.ID[:min(12, len(row.ID))]
	}
	if made, err := time.Parse(time.RFC3339Nano, image.Created); err == nil {
		row.CreatedSince, row.CreatedAt = ago(made), made.Format("2006-01-02 15:04:05 -0700 MST")
	}
	return row
}

func (c *cli) pullVerb() *verb {
	var quiet bool
	var platform string
	return &verb{usage: " [OPTIONS] NAME[:TAG|@DIGEST]", least: 1, most: 1,
		flags: func(f *flagSet) {
			f.boolean(&quiet, "quiet", "q")
			f.text(&platform, "platform", "")
			f.refuse(whyNoVerb, "all-tags,a!", "disable-content-trust!")
		},
		run: func(ctx context.Context, args []string) error {
			if err := c.images.Pull(ctx, args[0], c.pullProgress(quiet)); err != nil {
				return err
			}
			fmt.Fprintln(c.Out, tagged(args[0]))
			return nil
		}}
}

func (c *cli) pullProgress(quiet bool) func(string) {
	if quiet {
		return func(string) {}
	}
	return func(line string) { fmt.Fprintln(c.Err, line) }
}

func (c *cli) tagVerb() *verb {
	return &verb{usage: " SOURCE_IMAGE[:TAG] TARGET_IMAGE[:TAG]", least: 2, most: 2,
		run: func(ctx context.Context, args []string) error {
			err := c.images.Tag(ctx, args[0], tagged(args[1]))
			if errors.Is(err, ErrNoImage) {
				return noImage(args[0], err)
			}
			return err
		}}
}
