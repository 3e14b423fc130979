package rest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/api"
)

// listSandboxes returns the sandboxes that the filters let through, the last used
// first, or a page of them, the last made first.
func (s *Server) listSandboxes(c *call, q *api.SandboxQuery, _ *none) (*api.Sandboxes, error) {
	account, err := c.account(q.Account)
	if err != nil {
		return nil, err
	}
	filter, err := newSandboxFilter(q)
	if err != nil {
		return nil, err
	}
	list, err := c.visibleSandboxes(account)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(s api.Sandbox) bool { return !filter.matches(&s) })
	answer := &api.Sandboxes{Sandboxes: list, Total: len(list)}
	if q.Order == orderCreated {
		answer.Sandboxes = filter.after(list)
	}
	if q.Limit > 0 && q.Limit < len(answer.Sandboxes) {
		answer.Sandboxes = answer.Sandboxes[:q.Limit]
		if q.Order == orderCreated {
			answer.Next = cursorOf(&answer.Sandboxes[q.Limit-1])
		}
	}
	c.showAll(answer.Sandboxes)
	return answer, nil
}

// orderCreated lists what was made last first. Nothing changes its place in it, so
// that it has pages.
const orderCreated = "created"

// sandboxFilter says which sandboxes are listed.
type sandboxFilter struct {
	*api.SandboxQuery
	metadata map[string]string
	made     int64 // of the cursor
	name     string
}

func newSandboxFilter(q *api.SandboxQuery) (*sandboxFilter, error) {
	f := &sandboxFilter{SandboxQuery: q, metadata: map[string]string{}}
	for _, text := range q.Metadata {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, invalid(api.FieldError{Pointer: "metadata", Detail: "must be NAME=VALUE"})
		}
		f.metadata[name] = value
	}
	if q.Cursor == "" {
		return f, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d %s", &f.made, &f.name)
	}
	if err != nil || q.Order != orderCreated {
		return nil, invalid(api.FieldError{Pointer: "cursor", Detail: "must be the next of a page, with order=created"})
	}
	return f, nil
}

func cursorOf(s *api.Sandbox) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", s.CreatedAtMs, s.ContainerName))
}

func (f *sandboxFilter) matches(s *api.Sandbox) bool {
	if f.Made && s.ID == "" || f.State != "" && s.State != f.State {
		return false
	}
	for name, value := range f.metadata {
		if have, ok := s.Metadata[name]; !ok || have != value {
			return false
		}
	}
	return true
}

// after sorts a list by when its sandboxes were made, and returns what follows the
// cursor.
func (f *sandboxFilter) after(list []api.Sandbox) []api.Sandbox {
	order := func(s *api.Sandbox, made int64, name string) int {
		return cmp.Or(cmp.Compare(made, s.CreatedAtMs), strings.Compare(s.ContainerName, name))
	}
	slices.SortFunc(list, func(a, b api.Sandbox) int { return order(&a, b.CreatedAtMs, b.ContainerName) })
	if f.Cursor == "" {
		return list
	}
	return slices.DeleteFunc(list, func(s api.Sandbox) bool { return order(&s, f.made, f.name) <= 0 })
}
