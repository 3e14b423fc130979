package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/outbound"
)

// External is an agent of another service, which is given tasks over HTTP.
type External struct {
	ID, Name, Description string
	URL                   string
	// Token returns the bearer token that the service wants; nil if it wants none.
	Token func(context.Context) (string, error)
	// Private lets the name in URL stand for an address of this machine or of a
	// private network. An address that URL has in numbers may be any.
	Private bool
	Timeout time.Duration
}

// externalTask is what the service is sent.
type externalTask struct {
	Run      string            `json:"runId"`
	Graph    string            `json:"graphId"`
	Account  string            `json:"account,omitempty"`
	Model    string            `json:"model,omitempty"`
	Seconds  int64             `json:"timeoutSeconds"`
	Messages []externalMessage `json:"messages"`
}

type externalMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// externalAnswer is what it says.
type externalAnswer struct {
	Text  string         `json:"text"`
	Error *Failure       `json:"error"`
	Usage envelope.Usage `json:"usage"`
}

// Variant is the agent as an entry of the registry.
func (x External) Variant() Variant {
	return Variant{ID: x.ID, Name: x.Name, Description: x.Description, Timeout: x.Timeout, Remote: &externalExec{x, x.client()}}
}

type externalExec struct {
	External
	http *http.Client
}

// client follows no redirect, uses no proxy, and connects to no address that the
// configuration did not mean.
func (x External) client() *http.Client {
	dialer := &outbound.Dialer{Timeout: 30 * time.Second}
	if u, err := url.Parse(x.URL); err == nil && !x.Private && !inNumbers(u.Hostname()) {
		dialer.Rule = publicOnly
	}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true},
		CheckRedirect: outbound.NoRedirect,
	}
}

func inNumbers(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

// publicOnly refuses addresses that a name should not lead to.
func publicOnly(a netip.Addr) error {
	if !outbound.IsPublic(a) {
		return errors.New("its name leads to an address that is not of the public internet; privateNetwork: true allows that")
	}
	return nil
}

// Check refuses what a service elsewhere cannot give.
func (x *externalExec) Check(j *Job) error {
	if j.Branch != "" {
		return fail("not_supported", "%s works elsewhere, so its commits cannot be taken", x.ID)
	}
	return nil
}

// Execute posts the task and waits for the answer.
func (x *externalExec) Execute(ctx context.Context, j *Job, _ *grant.Terms, _ func(Event)) (*envelope.Envelope, error) {
	request, err := x.request(ctx, j)
	if err != nil {
		return nil, err
	}
	response, err := x.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fail("external_unreachable", "%s: %v", x.ID, errors.Unwrap(err)) // without the address
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, envelope.MaxOutput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer of %s: %w", x.ID, err)
	case len(text) > envelope.MaxOutput:
		return nil, fail("invalid_output", "the answer of %s has more than %d bytes", x.ID, envelope.MaxOutput)
	case response.StatusCode != http.StatusOK:
		return nil, fail("external_refused", "%s answered %s", x.ID, printable(response.Status))
	}
	return x.read(text)
}

func (x *externalExec) request(ctx context.Context, j *Job) (*http.Request, error) {
	task := &externalTask{Run: j.ID, Graph: x.ID, Account: j.Account, Model: j.Model, Seconds: int64(j.Inner / time.Second)}
	for _, m := range j.Messages {
		task.Messages = append(task.Messages, externalMessage{string(m.Role), m.Text})
	}
	body, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, x.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Idempotency-Key", j.ID)
	if x.Token == nil {
		return r, nil
	}
	token, err := x.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("the token of %s: %w", x.ID, err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return r, nil
}

func (x *externalExec) read(text []byte) (*envelope.Envelope, error) {
	var a externalAnswer
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fail("invalid_output", "the answer of %s is not an object with text or error", x.ID)
	}
	e := &envelope.Envelope{Meta: envelope.Meta{AgentMeta: envelope.AgentMeta{Usage: a.Usage}}}
	if a.Text != "" {
		e.Payloads = []envelope.Payload{{Text: a.Text}}
	}
	switch {
	case a.Error != nil:
		e.Meta.Error = &envelope.Error{Kind: a.Error.Code, Message: a.Error.Message}
	case a.Text == "":
		return nil, fail("no_output", "%s answered nothing", x.ID)
	}
	return e, nil
}

// Abandon does nothing: the service was given a time limit.
func (x *externalExec) Abandon(context.Context, *Job) error { return nil }
