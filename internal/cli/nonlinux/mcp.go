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
starts this command and speaks with it over standard input and output. Where the gateway
is that of a virtual machine, sandbox_up, sandbox_down and sandbox_status start, stop and
show it.`,
		Example: "  atoll mcp --gateway work </dev/null",
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.serveMCP(cmd.Context()) },
	}
}

// bridge passes messages of a client on to a gateway.
type bridge struct {
	http *http.Client
	vm   *machineTools // nil if the gateway is not that of a virtual machine

	mutex   sync.Mutex // of what follows
	out     io.Writer
	to      contexts.Context
	session string
}

// serveMCP passes messages on until the input ends.
func (e *env) serveMCP(ctx context.Context) error {
	b := &bridge{out: e.Out, http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	var err error
	if b.vm, err = e.machineTools(); err != nil {
		return err
	}
	if b.vm == nil {
		if b.to, err = e.target(); err != nil {
			return err
		}
	}
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
		case !b.begun() && !b.vm.greeted(): // the first answers name the session
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

// pass has one message answered. What fails is the answer to the request.
func (b *bridge) pass(ctx context.Context, message []byte) {
	err := errNotOurs
	if b.vm != nil {
		err = b.answerHere(ctx, message)
	}
	if errors.Is(err, errNotOurs) {
		err = b.send(ctx, message, b.write)
	}
	if b.vm != nil && errors.Is(err, errNoSession) { // the gateway was started anew
		b.setSession("")
		if err = b.connect(ctx); err == nil {
			err = b.send(ctx, message, b.write)
		}
	}
	if err != nil {
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

// errNoSession is the cause of an error about a session that the gateway does not know.
var errNoSession = errors.New("the gateway says " + http.StatusText(http.StatusNotFound))

// send sends one message to the gateway and hands every message of the answer to write.
func (b *bridge) send(ctx context.Context, message []byte, write func([]byte) error) error {
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
		b.setSession(id)
	}
	return readAnswer(answer, write)
}

func (b *bridge) setSession(id string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.session = id
}

// readAnswer hands the messages of an answer to write: one, or a stream of events.
func readAnswer(r *http.Response, write func([]byte) error) error {
	switch kind := r.Header.Get("Content-Type"); {
	case r.StatusCode == http.StatusAccepted:
		return nil
	case r.StatusCode == http.StatusOK && strings.HasPrefix(kind, "text/event-stream"):
		return readEvents(r.Body, write)
	case r.StatusCode == http.StatusOK:
		text, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
		if len(text) > maxMessage {
			err = errors.New("the gateway's answer is too large")
		}
		if err != nil {
			return err
		}
		return write(text)
	}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 500))
	if r.StatusCode == http.StatusNotFound {
		return fmt.Errorf("%w: %s", errNoSession, bytes.TrimSpace(text))
	}
	return fmt.Errorf("the gateway says %s: %s", r.Status, bytes.TrimSpace(text))
}

// readEvents hands the data of each event of a stream to write.
func readEvents(stream io.Reader, write func([]byte) error) error {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok || len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		if err := write(data); err != nil {
			return err
		}
	}
	return lines.Err()
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
	b.mutex.Lock()
	defer b.mutex.Unlock()
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(b.to.URL, "/")+mcpPath, body)
	if err != nil {
		return nil, err
	}
	if b.to.Token != "" {
		r.Header.Set("Authorization", "Bearer "+b.to.Token)
	}
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
