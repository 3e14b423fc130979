package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// question is a request of about size bytes. Words about how to answer are read
// by the upstream below.
func question(size int, stream bool, how ...string) []byte {
	text := strings.Repeat("package main // as agents send it: long texts with \\\"quotes\\\" and lines\\n", size/60+2)[:max(size-200, 0)]
	if strings.HasSuffix(text, `\`) {
		text += "n"
	}
	body := fmt.Sprintf(`{"model":"bench","stream":%v,"user":"%s","messages":[{"role":"user","content":"%s"}]}`, stream, strings.Join(how, ""), text)
	return fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:8080\r\nContent-Type: application/json\r\nAuthorization: Bearer none\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// flood has callers send a request each times, one after the other, and checks
// that every answer is whole.
func flood(ctx context.Context, address string, callers, each int, request []byte) error {
	group, ctx := errgroup.WithContext(ctx)
	for range callers {
		group.Go(func() error {
			conn, err := dial(ctx, address)
			if err != nil {
				return err
			}
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			r := bufio.NewReaderSize(conn, 32<<10)
			for range each {
				if _, err := conn.Write(request); err != nil {
					return err
				}
				if err := readOne(r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// dial connects to a socket, which is a path, or to a port.
func dial(ctx context.Context, address string) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// readOne reads one answer to its end.
func readOne(r *bufio.Reader) error {
	length, status := -1, ""
	for n := 0; ; n++ {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		if n == 0 {
			status = line
		}
		if line == "" {
			break
		}
		if name, value, _ := strings.Cut(line, ":"); strings.EqualFold(name, "content-length") {
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200") {
		return errors.New("answered " + status)
	}
	if length >= 0 {
		_, err := r.Discard(length)
		return err
	}
	return readChunks(r)
}

func readChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(string(bytes.TrimRight(line, "\r\n")), 16, 64)
		if err != nil {
			return err
		}
		if _, err := r.Discard(int(size) + 2); err != nil || size == 0 {
			return err
		}
	}
}

// thought is how long a caller looks at an answer before it asks again. What a
// proxy does after an answer is not part of the next.
const thought = time.Millisecond

// firstBytes measures the time from a request to the first byte of its answer.
func firstBytes(ctx context.Context, socket string, n int, request []byte) ([]float64, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 32<<10)
	var times []float64
	for range n {
		start := time.Now()
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if _, err := r.Peek(1); err != nil {
			return nil, err
		}
		times = append(times, microseconds(time.Since(start)))
		if err := readOne(r); err != nil {
			return nil, err
		}
		time.Sleep(thought)
	}
	return times, nil
}

// hold opens streams and reads the first piece of each.
func hold(ctx context.Context, address string, n int, request []byte) (conns []net.Conn, err error) {
	for range n {
		conn, err := dial(ctx, address)
		if err != nil {
			return conns, err
		}
		conns = append(conns, conn)
		if _, err := conn.Write(request); err != nil {
			return conns, err
		}
		if _, err := io.ReadFull(conn, make([]byte, 64)); err != nil {
			return conns, err
		}
	}
	return conns, nil
}

// contend keeps every processor busy.
func contend(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var busy sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for ctx.Err() == nil {
				_ = strings.Repeat("x", 1000)
			}
		})
	}
	return func() { cancel(); busy.Wait() }
}

// upstream is the model of the benchmark.
type upstream struct {
	address string
	server  *http.Server
}

const (
	streamEvents = 200
	pacedEvents  = 100
	shortEvents  = 20
	// pausingEvents is for the first byte: a model that thinks between words leaves
	// the processors to those who pass the first one on.
	pausingEvents = 2
	pace          = 5 * time.Millisecond
)

func startUpstream(ctx context.Context, dir string) (*upstream, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	direct, err := (&net.ListenConfig{}).Listen(ctx, "unix", dir+"/direct.sock")
	if err != nil {
		l.Close()
		return nil, err
	}
	u := &upstream{address: l.Addr().String(), server: &http.Server{Handler: http.HandlerFunc(answerBench), ReadHeaderTimeout: time.Minute}}
	go func() { _ = u.server.Serve(l) }()
	go func() { _ = u.server.Serve(direct) }()
	return u, nil
}

func (u *upstream) close() { _ = u.server.Close() }

// answerBench answers as the request's words about how say.
func answerBench(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	head := string(body[:min(len(body), 200)])
	if !strings.Contains(head, `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","model":"bench","choices":[{"message":{"content":"`+strings.Repeat("words of an answer ", 32)+`"}}],"usage":{"prompt_tokens":400,"completion_tokens":160}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	n := streamEvents
	switch {
	case strings.Contains(head, "paced"):
		n = pacedEvents
	case strings.Contains(head, "short"):
		n = shortEvents
	case strings.Contains(head, "pausing"):
		n = pausingEvents
	}
	flusher := http.NewResponseController(w)
	for range n {
		_, _ = io.WriteString(w, `data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}`+"\n\n")
		if flusher.Flush() != nil {
			return
		}
		switch {
		case strings.Contains(head, "paced"), strings.Contains(head, "pausing"):
			time.Sleep(pace)
		case strings.Contains(head, "held"):
			<-r.Context().Done()
			return
		}
	}
	fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[],\"usage\":{\"prompt_tokens\":400,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", n)
}
