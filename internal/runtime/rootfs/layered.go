package rootfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/errhint"
)

// LayerOptions describe an image that is another one with a layer on top.
type LayerOptions struct {
	Base   string   // an image of the store, HostName for the host's own programs, or "" for nothing
	Names  []string // references of the result
	Source string   // where it came from
	User   string
	Env    []string // replaces the base's variables of the same names
	Labels map[string]string
	Report func(Progress) // may be nil
}

// labelOnHost is in the configuration of an image whose base is the host, so that
// its ID differs from that of the same layers without a base.
const labelOnHost = "atoll.base"

// AddLayer adds an image: the layers of a base, and one layer more, which is read
// as the tar of a directory. The archive is checked like that of any image.
func (s *Store) AddLayer(ctx context.Context, archive io.Reader, o LayerOptions) (*Image, error) {
	if err := checkNames(o.Names); err != nil {
		return nil, err
	}
	c := &candidate{source: o.Source, config: &v1.ConfigFile{}}
	if err := s.startFrom(c, o.Base); err != nil {
		return nil, err
	}
	f, err := s.spool(ctx, archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tops, err := s.readTar(ctx, f, o.Source)
	if err != nil {
		return nil, err
	}
	top := tops[0].candidate
	c.layers = append(c.layers, top.layers...)
	c.config.OS, c.config.Architecture = top.config.OS, top.config.Architecture
	c.config.RootFS.Type = top.config.RootFS.Type
	c.config.RootFS.DiffIDs = append(c.config.RootFS.DiffIDs, top.config.RootFS.DiffIDs...)
	o.describe(c.config)
	data, err := json.Marshal(c.config)
	if err != nil {
		return nil, err
	}
	c.id = digestOf(data)
	return s.add(ctx, c, o.Names, o.Report)
}

// startFrom begins a candidate with the layers and settings of a base.
func (s *Store) startFrom(c *candidate, base string) error {
	if base == "" {
		return nil
	}
	if IsHost(base) {
		c.onHost = true
		return nil
	}
	image, err := s.find(base)
	if err != nil {
		return err
	}
	c.onHost = image.OnHost
	for _, l := range image.Layers {
		hash, err := v1.NewHash(l.DiffID)
		if err != nil {
			return fmt.Errorf("image %s: %w", base, err)
		}
		c.config.RootFS.DiffIDs = append(c.config.RootFS.DiffIDs, hash)
		c.layers = append(c.layers, blob{open: func(context.Context) (io.ReadCloser, error) {
			return nil, errhint.With(errors.New("the base was removed meanwhile"), "run the same command again")
		}})
	}
	c.config.Config = v1.Config{Env: slices.Clone(image.Config.Env), User: image.Config.User, WorkingDir: image.Config.Workdir, Labels: maps.Clone(image.Config.Labels)}
	return nil
}

// describe writes the options into the configuration of the new image.
func (o *LayerOptions) describe(c *v1.ConfigFile) {
	for _, variable := range o.Env {
		name := variableName(variable)
		c.Config.Env = append(slices.DeleteFunc(c.Config.Env, func(old string) bool { return variableName(old) == name }), variable)
	}
	if o.User != "" {
		c.Config.User = o.User
	}
	if c.Config.Labels == nil {
		c.Config.Labels = map[string]string{}
	}
	maps.Copy(c.Config.Labels, o.Labels)
	if IsHost(o.Base) && o.Base != "" {
		c.Config.Labels[labelOnHost] = HostName
	}
}
