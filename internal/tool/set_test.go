package tool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/tool"
	"github.com/atoll-run/atoll/internal/tool/search"
)

func TestAll(t *testing.T) {
	var names []string
	for _, x := range tool.All() {
		names = append(names, x.Name)
		if x.Description == "" || strings.Contains(x.Description, "\n") {
			t.Errorf("%s: description %q", x.Name, x.Description)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(x.Schema(), &schema); err != nil {
			t.Fatal(err)
		}
		if _, err := schema.Resolve(nil); err != nil || schema.Type != "object" || strings.Contains(string(x.Schema()), "null") {
			t.Errorf("%s: %v: %s", x.Name, err, x.Schema())
		}
		for name, property := range schema.Properties {
			if property.Description == "" || property.Type == "" {
				t.Errorf("%s: %s has no description or type", x.Name, name)
			}
		}
	}
	want := []string{
		"exec", "process", "read", "write", "edit", "apply_patch", "ls", "grep", "view_image", "web_fetch", "web_search", "browser",
		"sessions_list", "sessions_history", "memory_search", "memory_get",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"image", "BASH", " apply-patch "} {
		if _, ok := tool.Find(name); !ok {
			t.Errorf("%q is not found", name)
		}
	}
}

func TestSchemaSaysWhatIsNeeded(t *testing.T) {
	x, _ := tool.Find("process")
	var schema jsonschema.Schema
	if err := json.Unmarshal(x.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(schema.Required, []string{"action"}) || !slices.Contains(schema.Properties["action"].Enum, any("kill")) {
		t.Errorf("got %s", x.Schema())
	}
}

// lists make the policy of a session.
func lists(l config.ToolList) func(*tool.Options) {
	return func(o *tool.Options) { o.Policy = policy.ResolveTools(config.ToolLists{Global: l}, "") }
}

func TestDenied(t *testing.T) {
	k := newKit(t, lists(config.ToolList{Deny: []string{"write", "image"}}))
	_, err := k.try("write", args{"path": "x", "content": "y"})
	denied, ok := errors.AsType[*tool.DeniedError](err)
	if !ok || !errors.Is(err, sandbox.ErrDenied) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		`Tool "write" blocked by sandbox tool policy (mode=all).`, "Reason: deny list", "Fix:", `- Remove "write" from tools.sandbox.tools.deny.`,
		"- See: atoll sandbox explain --agent main --session agent:main:main --tool write",
	} {
		if !strings.Contains(denied.Message, want) {
			t.Errorf("%q is not in\n%s", want, denied.Message)
		}
	}
	for _, name := range []string{"image", "view_image", "web_fetch", "web_search"} {
		if _, err := k.try(name, "not even JSON"); !errors.Is(err, sandbox.ErrDenied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k.put("x", "y")
	k.ok("read", args{"path": "x"})
}

// TestGrepIsAllowedWithRead: what may be read may be searched, unless that is
// forbidden by name.
func TestGrepIsAllowedWithRead(t *testing.T) {
	cases := []struct {
		list    config.ToolList
		allowed bool
	}{
		{config.ToolList{}, true},
		{config.ToolList{Allow: []string{"read"}}, true},
		{config.ToolList{Allow: []string{"grep"}}, true},
		{config.ToolList{Allow: []string{"exec"}}, false},
		{config.ToolList{Deny: []string{"grep"}}, false},
		{config.ToolList{Deny: []string{"read"}}, false},
	}
	grep, _ := tool.Find("grep")
	for _, c := range cases {
		p := policy.ResolveTools(config.ToolLists{Global: c.list}, "")
		if d := grep.Decide(p); d.Allowed != c.allowed {
			t.Errorf("%+v: %+v", c.list, d)
		}
	}
}

// newPair is a session with two guests on one workspace.
func newPair(t *testing.T, s config.Sandbox, edit ...func(*tool.Options)) *kit {
	t.Helper()
	net := machinetest.Start(t, nil)
	return newKit(t, append([]func(*tool.Options){func(o *tool.Options) {
		o.Router = policy.NewRouter(s)
		o.Networked = (&kit{t: t}).place("sbx-net", net, []policy.Mount{{Source: o.Workdir, Target: o.Workdir}})
		o.Networked.Network = true
	}}, edit...)...)
}

func TestRouting(t *testing.T) {
	k := newPair(t, config.Sandbox{NetworkAllow: []string{"ls"}, NetworkExecAllow: []string{"echo *", "sleep *"}})
	cases := []struct {
		tool string
		args args
		want string
	}{
		{"ls", args{}, "networked"},
		{"read", args{"path": "x"}, "isolated"},
		{"exec", args{"command": "echo a 'b c'"}, "networked"},
		{"exec", args{"argv": []string{"echo", "a"}}, "networked"},
		{"exec", args{"command": "printf a"}, "isolated"},
		{"exec", args{"command": "echo a; echo b"}, "isolated"},
		{"exec", args{"command": "echo $(id)"}, "isolated"},
		{"exec", args{"command": "A=b echo a"}, "isolated"},
		{"exec", args{"command": "echo a", "env": args{"PATH": k.dir}}, "isolated"},
		{"exec", args{"argv": []string{"/bin/echo", "a"}}, "isolated"},
		{"exec", args{"argv": []string{"echo x", "a"}}, "isolated"},
	}
	for _, c := range cases {
		result := k.call(c.tool, c.args)
		want := map[string]string{"isolated": "sbx", "networked": "sbx-net"}[c.want]
		if result.Where != c.want || result.Sandbox != want {
			t.Errorf("%s %v worked in %s (%s)", c.tool, c.args, result.Where, result.Sandbox)
		}
	}
	// The words are run as they are.
	k.ok("exec", args{"command": `echo 'a  b' "\$HOME"`}, "a  b $HOME\n")
}

func TestProcessesOfBothHalves(t *testing.T) {
	k := newPair(t, config.Sandbox{NetworkExecAllow: []string{"sleep *"}})
	isolated, networked := k.background("sleep 0.1; sleep 60"), k.background("sleep 60")
	k.ok("process", args{"action": "list"}, isolated, networked)
	for id, where := range map[string]string{isolated: "isolated", networked: "networked"} {
		if result := k.ok("process", args{"action": "kill", "id": id}); result.Where != where {
			t.Errorf("%s was found in %s", id, result.Where)
		}
	}
}

// TestNoHalfNoCall: a call that belongs to the networked half is not made
// elsewhere when there is none.
func TestNoHalfNoCall(t *testing.T) {
	k := newKit(t, func(o *tool.Options) {
		o.Router = policy.NewRouter(config.Sandbox{NetworkExecAllow: []string{"touch *"}})
	})
	if result, err := k.try("exec", args{"command": "touch made"}); err == nil {
		t.Errorf("got %+v", result)
	}
	k.ok("ls", args{}, "[. is empty]")
}

func TestHost(t *testing.T) {
	k := newKit(t, func(o *tool.Options) { o.Isolated.Host = true })
	result := k.ok("exec", args{"command": "echo a"}, "a\n", "[on the host, not in a sandbox]")
	if result.Where != tool.WhereHost || result.Sandbox != "" {
		t.Errorf("got %+v", result)
	}
}

// web serves pages on this machine, which guests of tests share.
func web(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>Reefs</title><h1>Atolls</h1><p>A ring of <a href='/coral'>coral</a>.<script>x</script>")
		case "/long":
			fmt.Fprint(w, strings.Repeat("0123456789", 20_000))
		case "/binary":
			_, _ = w.Write([]byte("\x00\x01\x02"))
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=ISO-8859-1")
			_, _ = w.Write([]byte("caf\xe9"))
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		default:
			http.Error(w, "nothing here", http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func permitLoopback(o *tool.Options) {
	o.Fetch.Permit = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}

func TestWebFetch(t *testing.T) {
	url := web(t)
	k := newPair(t, config.Sandbox{NetworkAllow: []string{"web_*"}}, permitLoopback)
	result := k.ok("web_fetch", args{"url": url + "/page"}, url+"/page\ntitle: Reefs\n\n# Atolls\n\nA ring of [coral]("+url+"/coral).\n")
	if result.Where != "networked" {
		t.Errorf("fetched by %s", result.Where)
	}
	k.ok("web_fetch", args{"url": url + "/long"}, "0123456789\n[characters 0 to 50000 of 200000; go on with offset 50000]")
	k.ok("web_fetch", args{"url": url + "/long", "offset": 199_995, "maxChars": 10}, "\n56789\n")
	k.ok("web_fetch", args{"url": url + "/binary"}, "[not text: application/octet-stream, 3 bytes]")
	k.ok("web_fetch", args{"url": url + "/latin"}, "café")
	k.fails("web_fetch", args{"url": url + "/none"}, "status: 404 Not Found", "nothing here")
	k.fails("web_fetch", args{"url": "ftp://example.org/"}, "hint: only http://")
	k.fails("web_fetch", args{"url": "http://no-such-host.invalid/"}, "web_fetch: host")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	k.fails("web_fetch", args{"url": "http://" + closed.Addr().String()}, "connection refused")
	for _, address := range []string{"http://169.254.169.254/", "http://[::1]/", "http://10.0.0.1/", url + "/away"} {
		if _, err := k.try("web_fetch", args{"url": address}); !errors.Is(err, sandbox.ErrDenied) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestWebNeedsANetwork(t *testing.T) {
	k := newKit(t)
	for name, a := range map[string]args{"web_fetch": {"url": "https://example.org"}, "web_search": {"query": "x"}} {
		_, err := k.try(name, a)
		if !errors.Is(err, sandbox.ErrDenied) || !strings.Contains(err.Error(), `Add "`+name+`" to sandbox.networkAllow`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWebSearch(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"results":[{"title":"About %s","url":"https://a.example","content":"line\none\u001b[31m"}]}`, r.URL.Query().Get("q"))
	}))
	t.Cleanup(server.Close)
	engine, err := search.New(search.Options{Provider: "searxng", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pair := config.Sandbox{NetworkAllow: []string{"web_search"}}
	k := newPair(t, pair, func(o *tool.Options) { o.Search = engine })
	k.ok("web_search", args{"query": "reefs"}, "1. About reefs\n   https://a.example\n   line one\n")
	none := newPair(t, pair)
	none.fails("web_search", args{"query": "reefs"}, "web search is not configured", "hint: set tools.web.search.provider")
}
