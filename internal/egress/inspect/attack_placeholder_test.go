package inspect_test

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/egress/inspect"
)

// TestAttack20_EchoedSecret has a server that repeats the credential in every way that
// is scrubbed. The program sees its placeholder, and never the value.
func TestAttack20_EchoedSecret(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, q *http.Request) {
		token := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
		if token != secret1 {
			out.WriteHeader(401)
			return
		}
		repeat(out, q, token)
	}), github())
	for _, path := range []string{"/plain", "/chunks", "/bytes", "/base64", "/basic", "/json", "/escaped", "/gzip", "/header", "/range"} {
		t.Run(path, func(t *testing.T) {
			status, text, header := w.do("GET", path, "", "Authorization", "Bearer "+w.placeholder(), "Range", "bytes=5-20", "Accept-Encoding", "gzip, br")
			all := text + fmt.Sprint(header)
			if status != 200 || len(text) == 0 {
				t.Errorf("%d %.300q", status, text)
			}
			for offset := range 3 {
				encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + secret1))
				if strings.Contains(all, encoded[4:len(encoded)-4]) {
					t.Errorf("base64 of the secret: %.300s", all)
				}
			}
			for at := 0; at+12 <= len(secret1); at++ {
				if strings.Contains(all, secret1[at:at+12]) {
					t.Fatalf("the secret at %d: %.300s", at, all)
				}
			}
			if path == "/plain" && text != "you are "+w.placeholder() {
				t.Errorf("%q", text)
			}
		})
	}
}

func repeat(out http.ResponseWriter, q *http.Request, token string) {
	flush := out.(http.Flusher).Flush
	switch q.URL.Path {
	case "/plain":
		fmt.Fprint(out, "you are "+token)
	case "/chunks":
		for _, part := range []string{"you are ", token[:7], token[7:20], token[20:]} {
			fmt.Fprint(out, part)
			flush()
		}
	case "/bytes":
		for _, c := range []byte("you are " + token + " and " + token) {
			_, _ = out.Write([]byte{c})
			flush()
		}
	case "/base64":
		fmt.Fprint(out, base64.StdEncoding.EncodeToString([]byte("{\"token\":\""+token+"\"}")))
	case "/basic":
		fmt.Fprint(out, base64.URLEncoding.EncodeToString([]byte("x:"+token)))
	case "/json":
		_ = json.NewEncoder(out).Encode(map[string]string{"t": token})
	case "/escaped":
		fmt.Fprint(out, url.Values{"t": {token}}.Encode())
	case "/gzip": // although identity was asked for
		out.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(out)
		fmt.Fprint(z, strings.Repeat("you are "+token+"\n", 1000))
		_ = z.Close()
	case "/header":
		out.Header().Set("X-Token", token)
		out.Header().Set("Set-Cookie", "t="+base64.StdEncoding.EncodeToString([]byte(token)))
		out.Header().Set("X-"+token, "1")
		fmt.Fprint(out, "in the header")
	case "/range":
		http.ServeContent(out, q, "x.txt", time.Time{}, strings.NewReader("you are "+token))
	}
}

// TestAttack20_UnreadableAnswer: an answer that cannot be looked into is refused.
func TestAttack20_UnreadableAnswer(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Encoding", "br")
		fmt.Fprint(out, secret1)
	}), github())
	if status, text, _ := w.do("GET", "/", ""); status != 502 || strings.Contains(text, secret1) {
		t.Errorf("%d %s", status, text)
	}
}

// TestAttack20_PlaceholderInTheBody: the request is refused, and the placeholder has not
// reached the server whole, however it is cut.
func TestAttack20_PlaceholderInTheBody(t *testing.T) {
	var seen atomic.Pointer[string]
	w := newWorld(t, http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		text := string(body)
		seen.Store(&text)
	}), github())
	fake := w.placeholder()
	bodies := map[string]string{
		"plain": "token=" + fake, "base64": base64.StdEncoding.EncodeToString([]byte("ab" + fake)), "at the very end": strings.Repeat("x", 100_000) + fake,
		"in the middle": strings.Repeat("y", 32<<10-10) + fake + strings.Repeat("z", 100_000),
	}
	n := 0
	for name, body := range bodies {
		for _, request := range []string{
			lines("POST / HTTP/1.1", "Host: "+site, fmt.Sprintf("Content-Length: %d", len(body)), "") + body,
			lines("POST / HTTP/1.1", "Host: "+site, "Transfer-Encoding: chunked", "") + chunked(body, 7),
		} {
			out := w.raw(request)
			r := w.result(n)
			n++
			if r == nil || r.Kind != inspect.LeakAttempt || r.Secret != "github" || !strings.HasPrefix(out, "HTTP/1.1 403") && out != "" {
				t.Errorf("%s: %v %.200s", name, r, out)
			}
			if got := seen.Load(); got != nil && (strings.Contains(*got, fake) || name == "base64" && len(*got) == len(body)) {
				t.Errorf("%s: it reached the server", name)
			}
		}
	}
}

// chunked is a body in chunks of n bytes.
func chunked(body string, n int) string {
	var b strings.Builder
	for len(body) > 0 {
		part := body[:min(n, len(body))]
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(part), part)
		body = body[len(part):]
	}
	return b.String() + "0\r\n\r\n"
}

// TestAttack20_ReplayedPlaceholder uses a placeholder without the grant that it was given
// to: by another grant of the sandbox, and in another sandbox, where it is a word like
// any other.
func TestAttack20_ReplayedPlaceholder(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo), github())
	fake := w.placeholder()
	none, err := inject.Open(w.dir, nil)
	check(t, err)
	inspector, err := inspect.Open(inspect.Options{Dir: w.dir, Secrets: none})
	check(t, err)
	w.change(func() { w.inspector = inspector })
	if status, text, _ := w.do("GET", "/", "", "Authorization", "Bearer "+fake); status != 403 || !strings.Contains(text, "secret github") {
		t.Errorf("%d %s", status, text)
	}
	other := newWorld(t, http.HandlerFunc(echo), github())
	if status, text, _ := other.do("GET", "/", "", "Authorization", "Bearer "+fake); status != 403 || strings.Contains(text, secret1) {
		t.Errorf("%d %s", status, text)
	}
}

// TestAttack20_PlainUpstream: no secret goes to a server without TLS.
func TestAttack20_PlainUpstream(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo), github())
	w.change(func() { w.plain, w.upstream = true, true })
	out := w.raw(lines("GET / HTTP/1.1", "Host: "+site, "Authorization: Bearer "+w.placeholder(), ""))
	if r := w.result(0); r == nil || r.Kind != inspect.LeakAttempt || !strings.HasPrefix(out, "HTTP/1.1 403") {
		t.Errorf("%v %s", r, out)
	}
}

// TestPlainHTTPIsSentOnWithTLS: a program without any CA has the secret put in.
func TestPlainHTTPIsSentOnWithTLS(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo), github())
	w.change(func() { w.plain = true })
	out := w.raw(lines("GET /x HTTP/1.1", "Host: "+site, "Authorization: Bearer "+w.placeholder(), "Connection: close", ""))
	if !strings.HasPrefix(out, "HTTP/1.1 200") || !strings.Contains(out, "Authorization: Bearer "+w.placeholder()) {
		t.Error(out)
	}
}
