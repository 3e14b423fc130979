//go:build linux

package main

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// fixtures are what documents may take for granted, by name.
func fixtures() map[string]func(*reader) {
	return map[string]func(*reader){
		"internet":   (*reader).needsInternet,
		"key":        (*reader).needsKey,
		"model":      (*reader).needsModel,
		"repository": (*reader).needsRepository,
		"sdks":       (*reader).needsSDKs,
	}
}

func fixtureNames() iter.Seq[string] { return maps.Keys(fixtures()) }

// modelConfig is the person's own configuration: a LiteLLM with one model.
const modelConfig = `{
  agents: { defaults: { model: "litellm/words", sandbox: { mode: "all" } } },
  llm: { providers: { litellm: { kind: "litellm", url: "%s", keys: [{ env: "LITELLM_MASTER_KEY" }] } }, billing: { graceSeconds: 0 } },
}
`

// needsModel gives the reader a model that answers, and a key to it.
func (r *reader) needsModel() {
	address := r.serve("words", "gemini-2.5-flash")
	r.env = append(r.env, "LITELLM_MASTER_KEY="+readersKey)
	r.mkdir(".atoll")
	r.chmod(".atoll", 0o700)
	r.write(".atoll/atoll.json5", fmt.Sprintf(modelConfig, address), 0o600)
}

// readersKey is the key that models are asked with.
const readersKey = "sk-0123456789-of-the-reader"

// serve serves models that always give the same answer, in every dialect, and
// returns their address.
func (r *reader) serve(names ...string) string {
	models := map[string]litellmtest.Model{}
	for _, name := range names {
		models[name] = litellmtest.Model{Input: 1e-06, Output: 1e-05, Answer: "It is 42."}
	}
	server, err := litellmtest.Listen(r.t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: readersKey, Models: models})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = server.Close() })
	return server.URL()
}

// needsSDKs gives the reader a Python and a project that have the package atoll.
func (r *reader) needsSDKs() {
	installed := installedSDKs(r.t)
	r.env = append(r.env, "PATH="+filepath.Join(installed, "venv", "bin")+":"+r.path("bin")+":"+os.Getenv("PATH"))
	if err := errors.Join(os.Symlink(filepath.Join(installed, "node"), r.path("bin/node")), os.Symlink(filepath.Join(installed, "project", "node_modules"), r.path("project/node_modules"))); err != nil {
		r.t.Fatal(err)
	}
}

// needsInternet gives the reader's machine a proxy behind which every name is a web server.
func (r *reader) needsInternet() {
	n, err := internettest.Start(internettest.Hello())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = n.Close() })
	r.env = append(r.env, "HTTP_PROXY="+n.Proxy, "HTTPS_PROXY="+n.Proxy)
}

// needsKey serves Anthropic's dialect where the reader's environment says that it
// is, so that a key is all that a document has to set.
func (r *reader) needsKey() {
	r.env = append(r.env, "ANTHROPIC_BASE_URL="+r.serve("claude-sonnet-4-5"))
}

// needsRepository makes the project a git repository with a remote.
func (r *reader) needsRepository() {
	const script = `git init -qb main . && git config user.name Reader && git config user.email reader@example.org &&
echo bin >.gitignore && echo hello >README.md && git add -A && git commit -qm begin &&
git clone -q --bare . ../remote.git && git remote add origin ../remote.git && git fetch -q origin`
	cmd := exec.CommandContext(r.t.Context(), "bash", "-ec", script)
	cmd.Dir, cmd.Env = r.path("project"), r.env
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, strings.TrimSpace(string(out)))
	}
}
