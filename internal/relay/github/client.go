// Package github opens and updates pull requests, and gets tokens of a GitHub
// App. It makes six kinds of requests of GitHub's REST API, which are less than
// a library for all of them would bring along.
package github

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/secret"
)

// The bounds of talking to GitHub.
const (
	maxAnswer   = 8 << 20
	maxAttempts = 4
	maxWait     = time.Minute // for one retry; a longer wait is ErrLimited
	// Timeout is that of one request.
	Timeout = 30 * time.Second
)

// Client talks to one server.
type Client struct {
	// Base is the address of the API: https://api.github.com, or
	// https://HOST/api/v3 of GitHub Enterprise.
	Base string
	HTTP *http.Client // nil takes one with a timeout
	// Wait sleeps between attempts; nil takes a timer.
	Wait func(context.Context, time.Duration) error
}

// Default is the address of GitHub's own API.
const Default = "https://api.github.com"

// Error is what the server said.
type Error struct {
	Status  int
	Message string
	Codes   []string // of the single errors
}

func (e *Error) Error() string {
	return fmt.Sprintf("GitHub answers %d: %s", e.Status, e.Message)
}

// ErrLimited means that the server's rate limit lasts longer than maxWait.
var ErrLimited = errors.New("GitHub's rate limit is reached")

type call struct {
	method, path string
	body         any
	auth         secret.Value
	into         any
}

// do makes a request, again if it was not taken. Requests are made so that a
// second one does no harm.
func (c *Client) do(ctx context.Context, r *call) (next string, err error) {
	for attempt := 1; ; attempt++ {
		wait, next, err := c.attempt(ctx, r)
		if err == nil || wait < 0 || attempt == maxAttempts {
			return next, err
		}
		if wait == 0 {
			wait = time.Second << attempt
		}
		if wait > maxWait {
			return "", errhint.With(fmt.Errorf("%w: it asks to wait %s", ErrLimited, wait.Round(time.Second)), "`atoll relay retry` continues later")
		}
		if err := c.wait(ctx, wait); err != nil {
			return "", err
		}
	}
}

// attempt makes a request. A wait of 0 or more says that it may be made again.
func (c *Client) attempt(ctx context.Context, r *call) (wait time.Duration, next string, err error) {
	request, err := c.request(ctx, r)
	if err != nil {
		return -1, "", err
	}
	answer, err := c.client().Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("ask GitHub: %w", scrub(err, r.auth))
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return 0, "", fmt.Errorf("read GitHub's answer: %w", err)
	}
	if answer.StatusCode >= 300 {
		return retryAfter(answer), "", failure(answer.StatusCode, body, r.auth)
	}
	if r.into != nil {
		err = json.Unmarshal(body, r.into)
	}
	return -1, nextPage(answer.Header.Get("Link")), err
}

func (c *Client) request(ctx context.Context, r *call) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, strings.TrimSuffix(c.base(), "/")+r.path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	request.Header.Set("User-Agent", "atoll")
	request.Header.Set("Authorization", "Bearer "+r.auth.Reveal())
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, nil
}

func (c *Client) base() string {
	if c.Base == "" {
		return Default
	}
	return c.Base
}

// client follows no redirect: the configuration decides where the credential goes.
func (c *Client) client() *http.Client {
	if c.HTTP != nil {
		return c.HTTP
	}
	return &http.Client{Timeout: Timeout, CheckRedirect: outbound.NoRedirect}
}

func (c *Client) wait(ctx context.Context, d time.Duration) error {
	if c.Wait != nil {
		return c.Wait(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryAfter says when a request that failed may be made again; -1 is never.
func retryAfter(answer *http.Response) time.Duration {
	limited := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusForbidden
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds >= 0 && (limited || answer.StatusCode >= 500) {
		return time.Duration(min(seconds, 86400)) * time.Second
	}
	if limited && answer.Header.Get("X-RateLimit-Remaining") == "0" {
		reset, err := strconv.ParseInt(answer.Header.Get("X-RateLimit-Reset"), 10, 64)
		if err != nil {
			return maxWait
		}
		return max(time.Second, time.Until(time.Unix(reset, 0)))
	}
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= 500 {
		return 0
	}
	return -1
}

func failure(status int, body []byte, auth secret.Value) error {
	var said struct {
		Message string
		Errors  []struct{ Code, Message string }
	}
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = http.StatusText(status)
	}
	e := &Error{Status: status, Message: auth.Scrub(short(said.Message))}
	for _, one := range said.Errors {
		e.Codes = append(e.Codes, one.Code)
		if one.Message != "" {
			e.Message += "; " + auth.Scrub(short(one.Message))
		}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return errhint.With(e, "check that the token is valid and has the permissions Contents and Pull requests for this repository")
	case http.StatusNotFound:
		return errhint.With(e, "check the repository's name, and that the token may see it")
	}
	return e
}

func short(text string) string {
	if len(text) > 300 {
		text = strings.ToValidUTF8(text[:300], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

func scrub(err error, auth secret.Value) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return errors.New(auth.Scrub(failed.Err.Error()))
	}
	return err
}

// nextPage finds the path of the next page in a Link header. Only the query is
// believed: the host of the next request stays ours.
func nextPage(link string) string {
	for part := range strings.SplitSeq(link, ",") {
		address, relation, ok := strings.Cut(part, ";")
		if !ok || !strings.Contains(relation, `rel="next"`) {
			continue
		}
		if u, err := url.Parse(strings.Trim(strings.TrimSpace(address), "<>")); err == nil {
			return "?" + u.RawQuery
		}
	}
	return ""
}
