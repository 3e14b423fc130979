package dockercli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// imageRow is one line of `docker images`, by the names that formats use.
type imageRow struct {
	Repository, Tag, Digest, ID, CreatedSince, CreatedAt, Size string
}

func (c *cli) imagesVerb() *verb {
	var quiet, whole, all bool
	var format string
	return &verb{usage: " [OPTIONS] [REPOSITORY[:TAG]]", most: 1,
		flags: func(f *flagSet) {
			f.truth(&quiet, "quiet", "q")
			f.truth(&whole, "no-trunc", "")
			f.truth(&all, "all", "a")
			f.text(&format, "format", "")
			f.refuse("images are looked for by name only", "filter,f", "digests!", "tree!")
		},
		run: func(ctx context.Context, args []string) error {
			images, err := c.boxes.Images(ctx)
			if err != nil {
				return err
			}
			rows := imageRows(images, args, whole)
			if quiet {
				for _, row := range rows {
					fmt.Fprintln(c.Out, row.ID)
				}
				return nil
			}
			return printTable(c.Out, format, rows, "table {{.Repository}}\t{{.Tag}}\t{{.ID}}\t{{.CreatedSince}}\t{{.Size}}", imageHeads())
		}}
}

func imageHeads() map[string]string {
	return map[string]string{"Repository": "REPOSITORY", "Tag": "TAG", "ID": "IMAGE ID", "CreatedSince": "CREATED", "CreatedAt": "CREATED AT",
		"Size": "SIZE", "Digest": "DIGEST"}
}

func imageRows(images []*Image, wanted []string, whole bool) []imageRow {
	rows := []imageRow{}
	for _, image := range images {
		tags := image.Tags
		if len(tags) == 0 {
			tags = []string{"<none>:<none>"}
		}
		for _, ref := range tags {
			at := strings.LastIndexByte(ref, ':')
			row := imageRow{Repository: ref[:at], Tag: ref[at+1:], Digest: "<none>", ID: image.ID, Size: sizeText(image.Size)}
			if len(wanted) > 0 && portable(wanted[0]) != row.Repository && portable(wanted[0]) != ref {
				continue
			}
			if !whole {
				row.ID = strings.TrimPrefix(image.ID, "sha256:")
				row.ID = row.ID[:min(12, len(row.ID))]
			}
			if made, err := time.Parse(time.RFC3339Nano, image.Created); err == nil {
				row.CreatedSince, row.CreatedAt = ago(made), made.Format("2006-01-02 15:04:05 -0700 MST")
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// sizeText is docker's way of writing a size.
func sizeText(n int64) string {
	size := float64(n)
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if size < 1000 {
			return fmt.Sprintf("%.3g%s", size, unit)
		}
		size /= 1000
	}
	return fmt.Sprintf("%.3gTB", size)
}

func (c *cli) pullVerb() *verb {
	var quiet bool
	var platform string
	return &verb{usage: " [OPTIONS] NAME[:TAG|@DIGEST]", least: 1, most: 1,
		flags: func(f *flagSet) {
			f.truth(&quiet, "quiet", "q")
			f.text(&platform, "platform", "")
			f.refuse(whyNoVerb, "all-tags,a!", "disable-content-trust!")
		},
		run: func(ctx context.Context, args []string) error {
			if err := c.boxes.Pull(ctx, args[0], c.pullProgress(quiet)); err != nil {
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
			err := c.boxes.Tag(ctx, args[0], tagged(args[1]))
			if errors.Is(err, ErrNoImage) {
				return noImage(args[0], err)
			}
			return err
		}}
}
