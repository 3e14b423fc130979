package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// engineAPI is an engine as its owner sees it, beside the code under test.
type engineAPI struct {
	t      *testing.T
	client *http.Client
}

func newEngineAPI(t *testing.T, host string) *engineAPI {
	client := &http.Client{Transport: unixTransport(host)}
	t.Cleanup(client.CloseIdleConnections)
	return &engineAPI{t, client}
}

func unixTransport(host string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}}
}

// errNoContainer is the engine's 404.
var errNoContainer = errors.New("not found")

func (e *engineAPI) call(method, path, body string, answer any) error {
	// Not the test's context: cleaning up comes after it has ended.
	req, err := http.NewRequestWithContext(context.WithoutCancel(e.t.Context()), method, "http://engine/v1.41"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound:
		return errNoContainer
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode != http.StatusNotModified:
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}

func (e *engineAPI) must(method, path, body string, answer any) {
	e.t.Helper()
	if err := e.call(method, path, body, answer); err != nil {
		e.t.Fatal(err)
	}
}

type containerInfo struct {
	ID     string `json:"Id"`
	Names  []string
	State  string
	Labels map[string]string
}

func (c containerInfo) name() string { return strings.TrimPrefix(c.Names[0], "/") }

// list returns the containers with a label, running or not.
func (e *engineAPI) list(label string) []containerInfo {
	e.t.Helper()
	filters, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		e.t.Fatal(err)
	}
	var found []containerInfo
	e.must(http.MethodGet, "/containers/json?all=1&filters="+url.QueryEscape(string(filters)), "", &found)
	return found
}

type containerDetail struct {
	ID    string `json:"Id"`
	State struct {
		Status    string
		Running   bool
		Pid       int
		StartedAt string
	}
	Config struct{ Labels map[string]string }
	// GraphDriver tells where the engine mounts the container's root.
	GraphDriver struct{ Data map[string]string }
}

// inspect returns a container, nil if there is none.
func (e *engineAPI) inspect(name string) *containerDetail {
	e.t.Helper()
	found := new(containerDetail)
	err := e.call(http.MethodGet, "/containers/"+name+"/json", "", found)
	if errors.Is(err, errNoContainer) {
		return nil
	} else if err != nil {
		e.t.Fatal(err)
	}
	return found
}

func (e *engineAPI) remove(id string) {
	e.t.Helper()
	err := e.call(http.MethodDelete, "/containers/"+id+"?force=1&v=1", "", nil)
	if err != nil && !errors.Is(err, errNoContainer) && !strings.Contains(err.Error(), "already in progress") {
		e.t.Errorf("container %s is left: %v", id, err)
	}
}

// run makes a container that is none of ours, and starts it.
func (e *engineAPI) run(name, image string, labels map[string]string) *containerDetail {
	e.t.Helper()
	body, err := json.Marshal(map[string]any{"Image": image, "Cmd": []string{"sleep", "600"}, "Labels": labels, "StopTimeout": 1,
		"HostConfig": map[string]any{"NetworkMode": "none"}})
	if err != nil {
		e.t.Fatal(err)
	}
	e.must(http.MethodPost, "/containers/create?name="+name, string(body), nil)
	e.t.Cleanup(func() { e.remove(name) })
	e.must(http.MethodPost, "/containers/"+name+"/start", "", nil)
	return e.inspect(name)
}
