package nonlinux

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/contexts"
)

const (
	mcpPath       = "/mcp"
	sessionHeader = "Mcp-Session-Id"
	maxMessage    = 4 << 20 // of one message, either way
	maxUnderWay   = 16      // requests at once
)

func newMCPCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "mcp", Short: "Give the sandbox tools of a gateway to a client of the Model Context Protocol", Args: cobra.NoArgs,
		Long: `Give the tools of a sandbox at the gateway to a client of the Model Context Protocol, which
starts this command and speaks with it over standard input and output.`,
		Example: "  atoll mcp --gateway work </dev/null",
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.serveMCP(cmd.Context()) },
	}
}

// bridge passes messages of a client on to a gateway.
type bridge struct {
	to      contexts.Context
	http    *http.Client
	mutex   sync.Mutex // of out and session
	out     io.Writer
	session string
}

// serveMCP passes messages on until the input ends.
func (e *env) serveMCP(ctx context.Context) error {
	to, err := e.target()
	if err != nil {
		return err
	}
	b := &bridge{to: to, out: e.Out, http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	defer b.end(context.WithoutCancel(ctx))
	lines := bufio.NewScanner(e.In)
	lines.Buffer(nil, maxMessage)
	slots := make(chan struct{}, maxUnderWay)
	var all sync.WaitGroup
	defer all.Wait()
	for lines.Scan() {
		message := bytes.TrimSpace(bytes.Clone(lines.Bytes()))
		switch {
		case len(message) == 0:
		case !b.begun(): // the first answers name the session
			b.pass(ctx, message)
		default:
			slots <- struct{}{}
			all.Go(func() { b.pass(ctx, message); <-slots })
		}
	}
	return lines.Err()
}

// begun reports whether the gateway named the session.
func (b *bridge) begun() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.session != ""
}

// pass sends one message and writes every message of the answer. What fails is the
// answer to the request.
func (b *bridge) pass(ctx context.Context, message []byte) {
	if err := b.send(ctx, message); err != nil {
		var request struct {
			ID json.RawMessage `json:"id"`
		}
		if json.Unmarshal(message, &request) != nil || request.ID == nil {
			return // nobody waits for an answer
		}
		answer, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "error": map[string]any{"code": -32603, "message": err.Error()}})
		_ = b.write(answer)
	}
}

func (b *bridge) send(ctx context.Context, message []byte) error {
	r, err := b.request(ctx, http.MethodPost, bytes.NewReader(message))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := b.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if id := answer.Header.Get(sessionHeader); id != "" {
		b.mutex.Lock()
		b.session = id
		b.mutex.Unlock()
	}
	return b.answer(answer)
}

// answer writes the messages of an answer: one, or a stream of events.
func (b *bridge) answer(r *http.Response) error {
	switch kind := r.Header.Get("Content-Type"); {
	case r.StatusCode == http.StatusAccepted:
		return nil
	case r.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/event-stream"):
		return b.events(r.Body)
	case r.StatusCode == http.StatusOK:
		text, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
		if len(text) > maxMessage {
			err = errors.New("the gateway's answer is too large")
		}
		return errors.Join(err, b.writeIf(err == nil, text))
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 500))
	return fmt.Errorf("the gateway says %s: %s", r.Status, bytes.TrimSpace(text))
}

// events writes the data of each event of a stream.
func (b *bridge) events(stream io.Reader) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			if err := b.writeIf(len(bytes.TrimSpace(data)) > 0, data); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

func (b *bridge) writeIf(is bool, text []byte) error {
	if !is {
		return nil
	}
	return b.write(text)
}

// write writes one message in one line. Only JSON gets to the client.
func (b *bridge) write(text []byte) error {
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return fmt.Errorf("the gateway's answer is no JSON: %w", err)
	}
	line.WriteByte('\n')
	b.mutex.Lock()
	defer b.mutex.Unlock()
	_, err := b.out.Write(line.Bytes())
	return err
}

func (b *bridge) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(b.to.URL, "/")+mcpPath, body)
	if err != nil {
		return nil, err
	}
	if b.to.Token != "" {
		r.Header.Set("Authorization", "Bearer "+b.to.Token)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.session != "" {
		r.Header.Set(sessionHeader, b.session)
	}
	return r, nil
}

// end ends the session at the gateway.
func (b *bridge) end(ctx context.Context) {
	if !b.begun() {
		return
	}
	if r, err := b.request(ctx, http.MethodDelete, nil); err == nil {
		if answer, err := b.http.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	}
}
