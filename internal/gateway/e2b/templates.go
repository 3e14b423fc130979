package e2b

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
)

// builtIn are the images of templates that are there without the operator's words; that of
// base is the image of agent api.
var builtIn = map[string]string{baseTemplate: "", interpreter: interpreter, interpreter + "-v1": interpreter}

// interpreter is the image of a code interpreter, and the recipe that it is built with.
const interpreter = "code-interpreter"

// images returns the images of templates, by name.
func (c *call) images() map[string]string {
	all := maps.Clone(builtIn)
	maps.Copy(all, c.Templates())
	return all
}

// useTemplate makes a request one for a template: an image that the operator has named, or
// a snapshot of the caller's account.
func (c *call) useTemplate(q *api.CreateSandbox, name string) error {
	if name == "" {
		return badField("templateID", "is missing")
	}
	if image, ok := c.images()[name]; ok {
		q.Image, q.Workdir = image, workdir
		return nil
	}
	if _, err := c.Made.Template(c.ctx(), c.caller.Account, name); err != nil {
		if !errors.Is(err, sandboxes.ErrNoTemplate) {
			return err
		}
		return &fault{http.StatusNotFound, fmt.Sprintf("template %.64q not found: the operator names images in e2b.templates, and snapshots are templates", name)}
	}
	q.Template = name
	return nil
}

// templateOf returns the name of what a sandbox was made from.
func (c *call) templateOf(r *sandboxes.Record) string {
	if r.Template != "" {
		return r.Template
	}
	all := c.images()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] == r.Details.Request.Image {
			return name
		}
	}
	return baseTemplate
}

// template is a template as clients see it.
type template struct {
	TemplateID  string   `json:"templateID"`
	BuildID     string   `json:"buildID"`
	BuildStatus string   `json:"buildStatus"`
	Public      bool     `json:"public"`
	Aliases     []string `json:"aliases"`
	Names       []string `json:"names"`
	EnvdVersion string   `json:"envdVersion,omitempty"`
}

func templateNamed(name string) *template {
	return &template{TemplateID: name, BuildID: name, BuildStatus: "ready", Aliases: []string{name}, Names: []string{name}}
}

// names returns the templates that the caller may use.
func (c *call) names() ([]string, error) {
	all := slices.Collect(maps.Keys(c.images()))
	kept, err := c.Made.Templates(c.ctx(), c.caller.Account)
	for _, r := range kept {
		all = append(all, r.Template)
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

func (c *call) templates() error {
	names, err := c.names()
	if err != nil {
		return err
	}
	list := []*template{}
	for _, name := range names {
		list = append(list, templateNamed(name))
	}
	return c.answer(http.StatusOK, list)
}

func (c *call) templateAlias() error {
	names, err := c.names()
	if err != nil {
		return err
	}
	if !slices.Contains(names, c.r.PathValue("alias")) {
		return sandboxes.ErrNoTemplate
	}
	return c.answer(http.StatusOK, templateNamed(c.r.PathValue("alias")))
}

// snapshotInfo is a snapshot as clients see it.
type snapshotInfo struct {
	SnapshotID string   `json:"snapshotID"`
	Names      []string `json:"names"`
}

// snapshot keeps the files of the sandbox of the path as a template.
func (c *call) snapshot() error {
	var q struct {
		Name string `json:"name"`
	}
	if err := c.read(&q); err != nil {
		return err
	}
	r, err := c.sandbox()
	if err != nil {
		return err
	}
	if q.Name == "" {
		q.Name = "snapshot-" + strings.ToLower(rand.Text()[:12])
	}
	if _, ok := c.images()[q.Name]; ok {
		return sandboxes.ErrTemplateExists
	}
	kept, err := c.Made.Snapshot(c.ctx(), r, q.Name, c.Access.Limiter.Quota(c.caller).Sandboxes)
	if err != nil {
		return err
	}
	return c.answer(http.StatusCreated, &snapshotInfo{kept.Template, []string{kept.Template}})
}

// snapshots lists the snapshots of the caller's account.
func (c *call) snapshots() error {
	query := c.r.URL.Query()
	if query.Get("sandboxID") != "" {
		return badField("sandboxID", "the sandbox that a snapshot was made of is not kept")
	}
	kept, err := c.Made.Templates(c.ctx(), c.caller.Account)
	if err != nil {
		return err
	}
	list := []*snapshotInfo{}
	for _, r := range kept {
		if name := query.Get("name"); name == "" || name == r.Template {
			list = append(list, &snapshotInfo{r.Template, []string{r.Template}})
		}
	}
	from, to, err := c.page(len(list), func(i int) string { return list[i].SnapshotID })
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, list[from:to])
}

// removeTemplate removes a snapshot of the caller's account.
func (c *call) removeTemplate() error {
	r, err := c.Made.Template(c.ctx(), c.caller.Account, c.r.PathValue("template"))
	if err != nil {
		return err
	}
	if err := c.Made.Remove(c.ctx(), r); err != nil {
		return err
	}
	return c.done()
}
