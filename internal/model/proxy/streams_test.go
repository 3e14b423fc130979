package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// TestNoStreamIsTruncated is about a fault of httputil.ReverseProxy, which lost
// the end of one stream in some hundreds when processors were scarce. Streams are
// short: it is their ends that count.
func TestNoStreamIsTruncated(t *testing.T) {
	const callers, words = 20, 4
	each := int64(need.Rounds(25, 250))
	m := newModel(t, chat(words))
	m.Config.Handler = chat(words) // what was asked need not be remembered
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxPerCaller = 1000 }).listen(terms())
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		busy.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					_ = strings.Repeat("contention", n%100)
				}
			}
		})
	}
	var truncated atomic.Int64
	var group sync.WaitGroup
	for range callers {
		conn := p.dial()
		group.Go(func() {
			r := bufio.NewReader(conn)
			for range each {
				_ = conn.SetDeadline(time.Now().Add(eventually)) // of each answer
				_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
				if a := readAnswer(r, "POST"); a.err != nil || !strings.HasSuffix(a.body, "data: [DONE]\n\n") || strings.Count(a.body, "\n\n") != words+1 {
					truncated.Add(1)
					return
				}
			}
		})
	}
	group.Wait()
	close(stop)
	busy.Wait()
	if truncated.Load() > 0 {
		t.Errorf("%d callers saw a truncated stream", truncated.Load())
	}
	if c := p.spent("run-1"); c.Calls != callers*each || c.Tokens.Output != callers*each*words || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
}

func TestSlowReadersGetEverything(t *testing.T) {
	word := strings.Repeat("x", 1<<10)
	m := newModel(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 2000 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"%s%d\"}}]}\n\n", word, i)
		}
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2000}}\n\ndata: [DONE]\n\n")
	})
	p := newProxy(t, m.URL, nil).listen(terms())
	conn := p.dial()
	_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
	r := bufio.NewReaderSize(&sipping{Reader: conn}, 64<<10)
	a := readAnswer(r, "POST")
	a.want(t, 200, word+"1999", "[DONE]")
	if n := strings.Count(a.body, word); n != 2000 {
		t.Errorf("%d of 2000 events", n)
	}
	if c := p.spent("run-1"); c.Tokens.Output != 2000 {
		t.Errorf("charged %+v", c)
	}
}

// sipping reads with pauses.
type sipping struct {
	io.Reader
	n int
}

func (s *sipping) Read(p []byte) (int, error) {
	if s.n++; s.n%20 == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	return s.Reader.Read(p)
}

// TestNothingIsLeftWhenAllCallersVanish holds 200 streams and closes them all.
func TestNothingIsLeftWhenAllCallersVanish(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxPerCaller = 1000; o.Drain = time.Millisecond }).listen(terms())
	var conns []net.Conn
	for range 200 {
		conn := p.dial()
		_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		conn.Close()
	}
	until(t, "all is settled", func() bool { return p.Busy() == 0 && p.Conns() == 0 })
	if c := p.spent("run-1"); c.Calls != 200 || c.Estimated != 200 {
		t.Errorf("charged %+v", c)
	}
}
