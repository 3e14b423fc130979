package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/secret"
)

// The lengths that a pull request is cut to.
const (
	maxTitle = 250   // characters; GitHub takes 256
	maxBody  = 60000 // bytes; GitHub takes 65536 characters
	maxPages = 10
)

// Pull is a pull request as it should be.
type Pull struct {
	Owner, Repo string
	Head, Base  string // branches of that repository
	Title, Body string
	Run         string // whose part of the text Body is
	Labels      []string
	Draft       bool
}

// Opened is a pull request as it is.
type Opened struct {
	Number int
	URL    string
	New    bool
}

type pullRecord struct {
	Number int    `json:"number"`
	URL    string `json:"html_url"`
	State  string `json:"state"`
	Body   string `json:"body"` // null if there is none
	Head   struct {
		Ref  string `json:"ref"`
		Repo struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	} `json:"head"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

// Ensure opens the pull request of a branch, or updates the one that is open:
// there is never a second.
func (c *Client) Ensure(ctx context.Context, auth secret.Value, p *Pull) (*Opened, error) {
	found, err := c.find(ctx, auth, p)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return c.update(ctx, auth, p, found)
	}
	made, err := c.create(ctx, auth, p)
	if !alreadyThere(err) {
		return made, err
	}
	// Somebody opened one since we looked.
	if found, err = c.find(ctx, auth, p); err != nil || found == nil {
		return nil, errors.Join(errors.New("GitHub says that the pull request exists and does not list it"), err)
	}
	return c.update(ctx, auth, p, found)
}

func (p *Pull) path(rest ...string) string {
	return "/repos/" + url.PathEscape(p.Owner) + "/" + url.PathEscape(p.Repo) + strings.Join(rest, "")
}

// find looks through the open pull requests of the branch. The answer is
// checked, not believed: a server that ignores the filter lists others.
func (c *Client) find(ctx context.Context, auth secret.Value, p *Pull) (*pullRecord, error) {
	query := "?" + url.Values{"state": {"open"}, "head": {p.Owner + ":" + p.Head}, "base": {p.Base}, "per_page": {"100"}}.Encode()
	for range maxPages {
		var page []pullRecord
		next, err := c.do(ctx, &call{method: http.MethodGet, path: p.path("/pulls", query), auth: auth, into: &page})
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(page, func(r pullRecord) bool {
			return r.State == "open" && r.Head.Ref == p.Head && p.same(r.Head.Repo.FullName)
		})
		if at >= 0 {
			return &page[at], nil
		}
		if next == "" {
			return nil, nil
		}
		query = next
	}
	return nil, fmt.Errorf("GitHub lists more than %d pages of pull requests for one branch", maxPages)
}

func (p *Pull) same(fullName string) bool {
	return strings.EqualFold(fullName, p.Owner+"/"+p.Repo)
}

func (c *Client) create(ctx context.Context, auth secret.Value, p *Pull) (*Opened, error) {
	body := map[string]any{"title": title(p.Title), "body": withSection("", p), "head": p.Head, "base": p.Base, "draft": p.Draft, "maintainer_can_modify": true}
	var made pullRecord
	if _, err := c.do(ctx, &call{method: http.MethodPost, path: p.path("/pulls"), body: body, auth: auth, into: &made}); err != nil {
		return nil, err
	}
	return &Opened{made.Number, made.URL, true}, c.label(ctx, auth, p, &made)
}

// update changes our section of the text. The rest of it, whether it is a draft,
// and its title are people's after it was opened.
func (c *Client) update(ctx context.Context, auth secret.Value, p *Pull, found *pullRecord) (*Opened, error) {
	_, err := c.do(ctx, &call{method: http.MethodPatch, path: p.path(fmt.Sprintf("/pulls/%d", found.Number)), body: map[string]any{"body": withSection(found.Body, p)}, auth: auth})
	if err != nil {
		return nil, err
	}
	return &Opened{found.Number, found.URL, false}, c.label(ctx, auth, p, found)
}

func (c *Client) label(ctx context.Context, auth secret.Value, p *Pull, at *pullRecord) error {
	var missing []string
	for _, label := range p.Labels {
		if !slices.ContainsFunc(at.Labels, func(l struct {
			Name string `json:"name"`
		}) bool {
			return strings.EqualFold(l.Name, label)
		}) {
			missing = append(missing, label)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err := c.do(ctx, &call{method: http.MethodPost, path: p.path(fmt.Sprintf("/issues/%d/labels", at.Number)), body: map[string]any{"labels": missing}, auth: auth})
	return err
}

func alreadyThere(err error) bool {
	failed, ok := errors.AsType[*Error](err)
	return ok && failed.Status == http.StatusUnprocessableEntity && strings.Contains(failed.Message, "already exists")
}

func title(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(text); len(runes) > maxTitle {
		return string(runes[:maxTitle]) + "…"
	}
	return text
}
