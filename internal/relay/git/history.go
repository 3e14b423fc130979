package git

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ShallowCommits returns the commits at which the history of a commit is cut off if only
// depth commits of it are wanted: those that have a parent which is not among
// them. Without a depth, and where there are fewer, there are none.
func (r *Repo) ShallowCommits(ctx context.Context, tip string, depth int) ([]string, error) {
	if depth <= 0 {
		return nil, nil
	}
	out, err := r.Output(ctx, nil, "rev-list", "--parents", "--max-count="+strconv.Itoa(depth), tip, "--")
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		wanted[id] = true
	}
	var ends []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		for _, parent := range fields[1:] {
			if !wanted[parent] {
				ends = append(ends, fields[0])
				break
			}
		}
	}
	return ends, nil
}

// PackTo writes a pack of what a commit has and the known ones have not to files
// whose names begin with base, and returns how they go on; "" if there is nothing.
func (r *Repo) PackTo(ctx context.Context, base, head string, known ...string) (string, error) {
	out, err := r.Output(ctx, rangeInput(head, known), "pack-objects", "--revs", "--quiet", "--delta-base-offset", base)
	name := strings.TrimSpace(string(out))
	if err == nil && !IsID(name) {
		err = fmt.Errorf("git pack-objects: cannot read %q", name)
	}
	return name, err
}

// WritePack writes a pack of what the wanted commits have, and those with a ^
// before them have not, as if there were no history before ends.
func (r *Repo) WritePack(ctx context.Context, to io.Writer, wanted, ends []string) error {
	args := []string{"pack-objects", "--revs", "--thin", "--stdout", "--quiet", "--delta-base-offset"}
	var input strings.Builder
	for _, end := range ends {
		input.WriteString("--shallow " + end + "\n")
	}
	if len(ends) > 0 {
		args = append(args, "--shallow")
	}
	input.WriteString(lines(wanted))
	return r.Run(ctx, strings.NewReader(input.String()), to, args...)
}

// without names commits as those that are left out.
func without(ids []string) []string {
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, "^"+id)
	}
	return list
}
