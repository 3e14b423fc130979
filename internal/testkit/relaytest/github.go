package relaytest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// GitHub behaves like GitHub's API in the requests that the relay makes, and
// refuses what GitHub's documentation does not know.
type GitHub struct {
	URL string
	// Tokens are those that may be used now.
	Tokens map[string]bool
	// Repos are the repositories that there are, as owner/name.
	Repos []string
	// Trouble, if set, sees each request first, and returns true if it answered.
	Trouble func(w http.ResponseWriter, r *http.Request, n int) bool

	t        *testing.T
	mu       sync.Mutex
	pulls    []*Pull
	requests []string
}

// Pull is a pull request on the server.
type Pull struct {
	Number     int
	Repo       string
	Head, Base string
	Title      string
	Body       string
	State      string
	Draft      bool
	Labels     []string
	Updates    int
}

// NewGitHub starts a server that ends with the test.
func NewGitHub(t *testing.T, token string, repos ...string) *GitHub {
	t.Helper()
	g := &GitHub{t: t, Tokens: map[string]bool{token: true}, Repos: repos}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /repos/{owner}/{repo}/pulls", g.repo(g.list))
	mux.HandleFunc("POST /repos/{owner}/{repo}/pulls", g.repo(g.create))
	mux.HandleFunc("PATCH /repos/{owner}/{repo}/pulls/{number}", g.repo(g.update))
	mux.HandleFunc("POST /repos/{owner}/{repo}/issues/{number}/labels", g.repo(g.label))
	mux.HandleFunc("DELETE /installation/token", g.endToken)
	server := httptest.NewServer(g.guard(mux))
	t.Cleanup(server.Close)
	g.URL = server.URL
	return g
}

// Pulls are the pull requests so far.
func (g *GitHub) Pulls() []Pull {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Pull
	for _, p := range g.pulls {
		all = append(all, *p)
	}
	return all
}

// Requests are the requests so far, as method and path.
func (g *GitHub) Requests() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.requests)
}

// Add puts a pull request there that the relay did not open.
func (g *GitHub) Add(p Pull) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p.Number = len(g.pulls) + 1
	g.pulls = append(g.pulls, &p)
}

// Edit has a person change the text of a pull request.
func (g *GitHub) Edit(number int, edit func(body string) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pulls[number-1].Body = edit(g.pulls[number-1].Body)
}

// guard checks what every request must have.
func (g *GitHub) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.requests = append(g.requests, r.Method+" "+r.URL.Path)
		n := len(g.requests)
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		known := g.Tokens[token]
		g.mu.Unlock()
		for name, want := range map[string]string{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"} {
			if r.Header.Get(name) != want {
				g.t.Errorf("%s %s: header %s is %q", r.Method, r.URL.Path, name, r.Header.Get(name))
			}
		}
		if r.UserAgent() == "" {
			refuse(w, http.StatusForbidden, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header")
			return
		}
		if g.Trouble != nil && g.Trouble(w, r, n) {
			return
		}
		if !known {
			refuse(w, http.StatusUnauthorized, "Bad credentials")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *GitHub) repo(serve func(http.ResponseWriter, *http.Request, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("owner") + "/" + r.PathValue("repo")
		if !slices.Contains(g.Repos, name) {
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		serve(w, r, name)
	}
}

func (g *GitHub) list(w http.ResponseWriter, r *http.Request, repo string) {
	query := r.URL.Query()
	owner, _, _ := strings.Cut(repo, "/")
	var matching []*Pull
	for _, p := range g.pulls {
		if p.Repo == repo && p.State == query.Get("state") && (query.Get("base") == "" || p.Base == query.Get("base")) && (query.Get("head") == "" || owner+":"+p.Head == query.Get("head")) {
			matching = append(matching, p)
		}
	}
	per, page := number(query.Get("per_page"), 30), number(query.Get("page"), 1)
	from := min(len(matching), (page-1)*per)
	to := min(len(matching), from+per)
	if to < len(matching) {
		query.Set("page", strconv.Itoa(page+1))
		w.Header().Set("Link", fmt.Sprintf(`<https://elsewhere.example.com%s?%s>; rel="next"`, r.URL.Path, query.Encode()))
	}
	records := []map[string]any{}
	for _, p := range matching[from:to] {
		records = append(records, g.record(p))
	}
	reply(w, http.StatusOK, records)
}

func (g *GitHub) record(p *Pull) map[string]any {
	labels := []map[string]any{}
	for _, label := range p.Labels {
		labels = append(labels, map[string]any{"name": label})
	}
	return map[string]any{
		"number": p.Number, "state": p.State, "body": p.Body, "html_url": fmt.Sprintf("https://github.example.com/%s/pull/%d", p.Repo, p.Number),
		"head": map[string]any{"ref": p.Head, "repo": map[string]any{"full_name": p.Repo}}, "labels": labels,
	}
}

func (g *GitHub) create(w http.ResponseWriter, r *http.Request, repo string) {
	var asked struct {
		Title, Body, Head, Base string
		Draft                   bool
		Modify                  bool `json:"maintainer_can_modify"`
	}
	if !g.read(w, r, &asked) {
		return
	}
	if asked.Title == "" || asked.Head == "" || asked.Base == "" || len(asked.Title) > 1024 || len(asked.Body) > 65536 {
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	}
	if slices.ContainsFunc(g.pulls, func(p *Pull) bool {
		return p.Repo == repo && p.Head == asked.Head && p.Base == asked.Base && p.State == "open"
	}) {
		owner, _, _ := strings.Cut(repo, "/")
		reply(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []map[string]any{
			{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for " + owner + ":" + asked.Head + "."},
		}})
		return
	}
	p := &Pull{Number: len(g.pulls) + 1, Repo: repo, Head: asked.Head, Base: asked.Base, Title: asked.Title, Body: asked.Body, Draft: asked.Draft, State: "open"}
	g.pulls = append(g.pulls, p)
	reply(w, http.StatusCreated, g.record(p))
}

func (g *GitHub) update(w http.ResponseWriter, r *http.Request, repo string) {
	p := g.pull(repo, r.PathValue("number"))
	var asked struct{ Title, Body, State, Base *string }
	if p == nil || !g.read(w, r, &asked) {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	if asked.Body != nil {
		p.Body = *asked.Body
	}
	if asked.Title != nil {
		p.Title = *asked.Title
	}
	p.Updates++
	reply(w, http.StatusOK, g.record(p))
}

func (g *GitHub) label(w http.ResponseWriter, r *http.Request, repo string) {
	p := g.pull(repo, r.PathValue("number"))
	var asked struct{ Labels []string }
	if p == nil || !g.read(w, r, &asked) {
		refuse(w, http.StatusNotFound, "Not Found")
		return
	}
	p.Labels = append(p.Labels, asked.Labels...)
	reply(w, http.StatusOK, []any{})
}

func (g *GitHub) endToken(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.Tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	w.WriteHeader(http.StatusNoContent)
}

func (g *GitHub) pull(repo, number string) *Pull {
	for _, p := range g.pulls {
		if p.Repo == repo && strconv.Itoa(p.Number) == number {
			return p
		}
	}
	return nil
}

// read takes a body that has only fields that GitHub documents.
func (g *GitHub) read(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		g.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		refuse(w, http.StatusBadRequest, "Problems parsing JSON")
		return false
	}
	return true
}

func number(text string, standard int) int {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return n
	}
	return standard
}

func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may be gone
}
