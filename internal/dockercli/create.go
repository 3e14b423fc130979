package dockercli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

func (c *cli) createVerb() *verb {
	var o createOptions
	return &verb{usage: " [OPTIONS] IMAGE [COMMAND] [ARG...]", least: 1, most: -1, flags: o.add,
		run: func(ctx context.Context, args []string) error {
			made, err := c.create(ctx, &o, args)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Out, made.ID)
			return nil
		}}
}

// create makes a container, stopped.
func (c *cli) create(ctx context.Context, o *createOptions, args []string) (*Container, error) {
	made, err := o.container(args[0], args[1:], c.Getenv)
	if err != nil {
		return nil, asUsage(err)
	}
	if err := assignName(made); err != nil {
		return nil, err
	}
	if err := c.entry.AdmitEnv(made.Env); err != nil {
		return nil, err
	}
	if err := admitNetwork(made.Network); err != nil {
		return nil, err
	}
	image, err := c.image(ctx, made.Image, o)
	if err != nil {
		return nil, err
	}
	if err := made.inherit(image); err != nil {
		return nil, err
	}
	unlock, err := c.lock(ctx, made.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := c.make(ctx, made); err != nil {
		return nil, err
	}
	if o.cidfile != "" {
		err = os.WriteFile(o.cidfile, []byte(made.ID), 0o600)
	}
	return made, err
}

// admitNetwork refuses what no sandbox may have before an image is looked for.
func admitNetwork(name string) error {
	if strings.EqualFold(name, "host") || strings.HasPrefix(name, "container:") {
		return errhint.With(fmt.Errorf("network mode %q is blocked: a sandbox shares no network", name), "use --network none")
	}
	return nil
}

// asUsage gives refused flags the exit code of flags that are not known.
func asUsage(err error) error {
	if _, ok := errors.AsType[*refusal](err); ok {
		return &usageError{err: err, path: "docker"}
	}
	return err
}

// make makes the sandbox and then the record: a record means a container.
func (c *cli) make(ctx context.Context, made *Container) error {
	old, err := c.records.load(made.Name)
	switch {
	case err == nil:
		if _, err := c.entry.State(ctx, old); !errors.Is(err, ErrNoSandbox) {
			return errors.Join(nameInUse(made.Name, old.ID), ignore(err, ErrNoSandbox))
		}
		if err := c.records.drop(old); err != nil { // its sandbox was removed by other means
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := c.containers.Make(ctx, made); errors.Is(err, ErrNameTaken) {
		return nameInUse(made.Name, "")
	} else if err != nil {
		return err
	}
	if err := c.records.save(made); err != nil {
		return errors.Join(err, c.containers.Remove(context.WithoutCancel(ctx), made))
	}
	return nil
}

func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

func nameInUse(name, id string) error {
	by := "a sandbox of Atoll"
	if id != "" {
		by = fmt.Sprintf("container %q", id)
	}
	//nolint:staticcheck,revive // docker's words
	return fmt.Errorf("Conflict. The container name %q is already in use by %s. You have to remove (or rename) that container to be able to reuse that name.", "/"+name, by)
}

// assignName sets the id of a container, and its name if none was given.
func assignName(made *Container) error {
	var id [32]byte
	_, _ = rand.Read(id[:]) // it never fails
	made.ID, made.Created = hex.EncodeToString(id[:]), time.Now().UTC()
	made.Hostname = cmp.Or(made.Hostname, made.shortID())
	if made.Name == "" {
		made.Name = "atoll-" + made.ID[:12]
	}
	made.Name = strings.TrimPrefix(made.Name, "/")
	if !isName(made.Name) {
		//nolint:staticcheck // docker's words
		return fmt.Errorf("Invalid container name (%s), only [a-zA-Z0-9][a-zA-Z0-9_.-] are allowed", made.Name)
	}
	if len(made.Name) > maxName {
		return fmt.Errorf("container name %q is longer than the %d characters that a sandbox can have", made.Name, maxName)
	}
	return nil
}

// image finds the image, and pulls it if that is wanted.
func (c *cli) image(ctx context.Context, ref string, o *createOptions) (*Image, error) {
	if o.pull != "always" {
		image, err := c.images.Image(ctx, ref)
		if err == nil || !errors.Is(err, ErrNoImage) || o.pull == "never" {
			return image, noImage(ref, err)
		}
		fmt.Fprintf(c.Err, "Unable to find image '%s' locally\n", tagged(ref))
	}
	if err := c.images.Pull(ctx, ref, c.pullProgress(o.quiet)); err != nil {
		return nil, err
	}
	return c.images.Image(ctx, ref)
}

// noImage returns docker's error for a missing image.
func noImage(ref string, err error) error {
	if errors.Is(err, ErrNoImage) {
		return &exitError{code: exitFailure, err: fmt.Errorf("No such image: %s", tagged(ref))} //nolint:staticcheck // docker's words
	}
	return err
}

// tagged is a reference with its tag.
func tagged(ref string) string {
	if strings.Contains(ref, "@") || strings.Contains(ref[strings.LastIndex(ref, "/")+1:], ":") {
		return ref
	}
	return ref + ":latest"
}

// inherit fills in what the image says and create did not.
func (c *Container) inherit(image *Image) error {
	c.ImageID = image.ID
	c.Env = mergeEnv(c.Env, missing(image.Env, c.Env))
	labels := map[string]string{}
	maps.Copy(labels, image.Labels)
	maps.Copy(labels, c.Labels)
	c.Labels = labels
	if c.Entrypoint == nil {
		c.Entrypoint = image.Entrypoint
		if len(c.Cmd) == 0 {
			c.Cmd = image.Cmd
		}
	}
	for _, x := range []struct {
		to   *string
		from string
	}{{&c.Workdir, image.Workdir}, {&c.User, image.User}, {&c.StopSignal, image.StopSignal}} {
		if *x.to == "" {
			*x.to = x.from
		}
	}
	if len(c.argv()) == 0 {
		return errors.New("No command specified") //nolint:staticcheck // docker's words
	}
	return nil
}

// missing are the variables of env whose names have does not have.
func missing(env, have []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(have, func(x string) bool { return strings.HasPrefix(x, name+"=") })
	})
}
