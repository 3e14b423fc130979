package dockercli

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// filter is one --filter of a list.
type filter struct{ kind, value string }

// filters reads --filter flags in docker's way.
func (f *flagSet) filters(to *[]filter) {
	f.add("filter", "f", func(text string) error {
		kind, value, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("bad format of filter (expected name=value)")
		}
		*to = append(*to, filter{strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(value)})
		return nil
	})
}

// matchesAll tells whether something passes a list of filters: of one kind any may
// fit, of each kind one must; labels must all be there.
func matchesAll(list []filter, matches func(filter) (bool, error)) (bool, error) {
	hits := map[string]bool{}
	for _, f := range list {
		hit, err := matches(f)
		if err != nil {
			return false, err
		}
		key := f.kind
		if f.kind == "label" {
			key += "=" + f.value
		}
		hits[key] = hits[key] || hit
	}
	for _, hit := range hits {
		if !hit {
			return false, nil
		}
	}
	return true, nil
}

func invalidFilter(what string) error {
	return fmt.Errorf("Invalid filter '%s'", what) //nolint:staticcheck // docker's words
}

// matches applies one filter of `ps` to a container.
func (c *cli) matches(x *Container, s status, f filter) (bool, error) {
	switch f.kind {
	case "id":
		return strings.HasPrefix(x.ID, f.value), nil
	case "name":
		return namePattern(f.value)(x.Name), nil
	case "status":
		if !slices.Contains([]string{"created", "restarting", "running", "removing", "paused", "exited", "dead"}, f.value) {
			return false, invalidFilter("status=" + f.value)
		}
		return string(s) == f.value, nil
	case "exited":
		code, err := strconv.Atoi(f.value)
		return s == statusExited && x.Main.ExitCode == code, err
	case "ancestor":
		return tagged(f.value) == tagged(x.Image) || strings.TrimPrefix(x.ImageID, "sha256:") == strings.TrimPrefix(f.value, "sha256:"), nil
	case "label":
		return hasLabel(x.Labels, f.value), nil
	case "before", "since":
		other, err := c.records.find(f.value)
		if isMissing(err) {
			return false, fmt.Errorf("no such container %s", f.value)
		} else if err != nil {
			return false, err
		}
		return x.ID != other.ID && x.Created.Before(other.Created) == (f.kind == "before"), nil
	case "volume":
		return slices.ContainsFunc(x.Mounts, func(m Mount) bool { return m.Source == f.value || m.Target == f.value }), nil
	case "network":
		return f.value == network(x) || network(x) == "none" && f.value == noneID, nil
	case "health":
		return f.value == "none", nil // containers have no health checks
	case "publish", "expose":
		return false, nil // no container has ports
	case "is-task":
		return f.value == "false", nil
	}
	return false, invalidFilter(f.kind)
}

// namePattern finds names as docker does: by an expression, with or without the
// slash that they begin with there.
func namePattern(text string) func(name string) bool {
	expression, err := regexp.Compile(text)
	if err != nil {
		return func(name string) bool { return name == text }
	}
	return func(name string) bool { return expression.MatchString(name) || expression.MatchString("/"+name) }
}

// hasLabel tells whether a label is there, and has the value if one is asked for.
func hasLabel(labels map[string]string, asked string) bool {
	name, want, hasValue := strings.Cut(asked, "=")
	got, ok := labels[name]
	return ok && (!hasValue || got == want)
}

// matchesImage applies one filter of `images` to one name of an image.
func matchesImage(image *Image, ref string, f filter) (bool, error) {
	switch f.kind {
	case "reference":
		repository := ref[:strings.LastIndexByte(ref, ':')]
		whole, err := path.Match(f.value, ref)
		short, _ := path.Match(f.value, repository)
		return whole || short, err
	case "dangling":
		wanted, err := strconv.ParseBool(f.value)
		if err != nil {
			return false, invalidFilter("dangling=[" + f.value + "]")
		}
		return wanted == (len(image.Tags) == 0), nil
	case "label":
		return hasLabel(image.Labels, f.value), nil
	}
	return false, invalidFilter(f.kind)
}

// matchesNetwork applies one filter of `network ls`.
func matchesNetwork(n Network, f filter) (bool, error) {
	switch f.kind {
	case "name":
		return strings.Contains(n.Name, f.value), nil
	case "id":
		return strings.HasPrefix(n.ID, f.value), nil
	case "driver":
		return n.Driver == f.value, nil
	case "scope":
		return f.value == "local", nil
	case "type":
		return f.value == "builtin", nil
	case "label":
		return false, nil
	}
	return false, invalidFilter(f.kind)
}
