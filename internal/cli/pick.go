package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// named is something that a word of the command line can mean.
type named struct {
	name string
	also []string // other words for it
}

// mostCandidates is how many names an error about an ambiguous one lists.
const mostCandidates = 10

// errNoneNamed means that no name begins with the word that was given.
var errNoneNamed = errors.New("none is called so")

// pick finds the one that word names: by its name, by another word for it, or by
// the beginning of either. Several are an error that lists them.
func pick(kind, word string, all []named) (string, error) {
	tests := []func(named) bool{
		func(n named) bool { return n.name == word },
		func(n named) bool { return slices.Contains(n.also, word) },
		func(n named) bool {
			return word != "" && slices.ContainsFunc(append([]string{n.name}, n.also...), func(s string) bool { return strings.HasPrefix(s, word) })
		},
	}
	for _, test := range tests {
		var found []string
		for _, n := range all {
			if test(n) && !slices.Contains(found, n.name) {
				found = append(found, n.name)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return "", ambiguous(kind, word, found)
		}
	}
	return "", errNoneNamed
}

func ambiguous(kind, word string, found []string) error {
	slices.Sort(found)
	more := ""
	if n := len(found) - mostCandidates; n > 0 {
		found, more = found[:mostCandidates], fmt.Sprintf(" and %d more", n)
	}
	return withCode(exitUsage, errhint.With(fmt.Errorf("%s %q could be any of %s%s", kind, word, strings.Join(found, ", "), more), "write more of the name"))
}

// pickSandbox returns the name of the sandbox that word names: by its name, with or
// without the prefix that all have, by its session, or by the beginning of one.
func pickSandbox(ctx context.Context, a *app.App, word string) (string, error) {
	entries, err := a.Entries(ctx)
	if err != nil {
		return "", err
	}
	var all []named
	for _, entry := range entries {
		all = append(all, named{entry.ContainerName, []string{withoutPrefix(a, entry), entry.SessionKey}})
	}
	name, err := pick("sandbox", word, all)
	if errors.Is(err, errNoneNamed) {
		return "", errhint.With(fmt.Errorf("sandbox %q: %w", word, sandbox.ErrNotFound), "`atoll ps` shows what there is")
	}
	return name, err
}

// pickName returns the name of the sandbox that word is the beginning of; word
// itself if there is none: it may be a session that has no sandbox yet.
func pickName(ctx context.Context, a *app.App, word string) (string, error) {
	entries, err := a.Entries(ctx)
	if err != nil {
		return "", err
	}
	var all []named
	for _, entry := range entries {
		if entry.SessionKey == word {
			return word, nil
		}
		all = append(all, named{name: entry.ContainerName})
	}
	name, err := pick("sandbox", word, all)
	if errors.Is(err, errNoneNamed) {
		return word, nil
	}
	return name, err
}

// withoutPrefix is the name of a sandbox without the prefix of its agent's.
func withoutPrefix(a *app.App, entry *sandbox.Entry) string {
	agent, err := a.Config.Resolve(entry.AgentID)
	if err != nil {
		return entry.ContainerName
	}
	return strings.TrimPrefix(entry.ContainerName, agent.Sandbox.Docker.ContainerPrefix)
}

// runPages is how many pages of runs are searched for one that begins with a word.
const runPages = 10

// withRun calls do with an id and, if no run has it, with that of the one run
// whose id begins so.
func withRun(ctx context.Context, desk runDesk, id string, do func(id string) error) error {
	err := do(id)
	if !errors.Is(err, run.ErrNotFound) || id == "" {
		return noSuchRun(err)
	}
	var all []named
	var f run.Filter
	for range runPages {
		page, listErr := desk.list(ctx, f)
		if listErr != nil || len(page) == 0 {
			break
		}
		for i := range page {
			all = append(all, named{name: page[i].ID})
		}
		f.Before = page[len(page)-1].ID
	}
	full, pickErr := pick("run", id, all)
	switch {
	case errors.Is(pickErr, errNoneNamed):
		return noSuchRun(err)
	case pickErr != nil:
		return pickErr
	}
	return noSuchRun(do(full))
}

// pickCosts returns the costs of the run that word names: none if it asked no model.
func pickCosts(ctx context.Context, desk runDesk, word string, runs []money.RunCost) ([]money.RunCost, error) {
	var all []named
	for _, r := range runs {
		all = append(all, named{name: r.Run})
	}
	id, err := pick("run", word, all)
	if errors.Is(err, errNoneNamed) {
		err = withRun(ctx, desk, word, func(word string) error {
			r, err := desk.show(ctx, word)
			if err == nil {
				id = cmp.Or(r.KnownAs, r.ID)
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r money.RunCost) bool { return r.Run != id }), nil
}

// pickToken returns the id of the token or device that word names; word itself if
// there is none, for the verb to refuse.
func pickToken(ctx context.Context, a *app.App, word string) (string, error) {
	all, err := tokenNames(ctx, a)
	if err != nil {
		return "", err
	}
	id, err := pick("token", word, all)
	if errors.Is(err, errNoneNamed) {
		return word, nil
	}
	return id, err
}

// tokenNames are the ids of all tokens and devices.
func tokenNames(ctx context.Context, a *app.App) (all []named, err error) {
	tokens, err := a.Tokens().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tokens {
		all = append(all, named{name: tokens[i].ID})
	}
	gateway, err := a.GatewayTokens().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range gateway {
		all = append(all, named{name: gateway[i].ID})
	}
	devices, err := a.GatewayDevices().List(ctx)
	for i := range devices {
		all = append(all, named{name: devices[i].ID})
	}
	return all, err
}

// pickImage returns the image, or the name of one, that word names; word itself if
// none begins so: it may be in one of the other notations of references.
func pickImage(ctx context.Context, store *rootfs.Store, word string) (string, error) {
	images, err := store.List(ctx)
	if err != nil {
		return "", err
	}
	full, err := pick("image", word, imageNames(images))
	if errors.Is(err, errNoneNamed) {
		return word, nil
	}
	return full, err
}

func imageNames(images []*rootfs.Image) (all []named) {
	for _, i := range images {
		all = append(all, named{i.ID, []string{strings.TrimPrefix(i.ID, "sha256:")}})
		for _, n := range i.Names {
			all = append(all, named{name: rootfs.ShortName(n)})
		}
	}
	return all
}

// pickRelay returns the run that word names among those whose commits the relay
// has, or waits for; word itself if there is none.
func pickRelay(relays *app.Relays, word string) (string, error) {
	records, err := relays.List()
	if err != nil {
		return "", err
	}
	open, _ := relays.OpenWork() // what cannot be read is said by status
	var all []named
	for _, r := range records {
		all = append(all, named{name: r.Run})
	}
	for _, w := range open {
		all = append(all, named{name: w.Run})
	}
	id, err := pick("run", word, all)
	if errors.Is(err, errNoneNamed) {
		return word, nil
	}
	return id, err
}
