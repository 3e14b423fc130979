package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// peers are the processes that are compared.
type peers struct {
	direct       string // socket of the upstream itself
	nginx, atoll *peer
}

func (p *peers) all() []*peer { return []*peer{p.nginx, p.atoll} }

func (p *peers) close() {
	for _, x := range p.all() {
		if x != nil {
			x.stop()
		}
	}
}

// peer is a process, with its children, that serves a socket.
type peer struct {
	name, socket string
	cmd          *exec.Cmd
	stdin        io.WriteCloser
	stdout       *bufio.Reader
}

func startPeers(ctx context.Context, o Options, dir, upstream string) (_ *peers, err error) {
	p := &peers{direct: filepath.Join(dir, "direct.sock")}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.nginx, err = startNginx(ctx, dir, upstream); err != nil {
		return nil, err
	}
	p.atoll, err = startChild(ctx, o, dir, upstream, "")
	return p, err
}

// nginxConf does what the seed's proxy does: set the key and the billing headers,
// write a line a request, pass everything on without gathering it.
const nginxConf = `
daemon off; master_process on; worker_processes 2; pid %[1]s/nginx.pid; error_log %[1]s/nginx.err;
events { worker_connections 4096; }
http {
  log_format audit '$time_iso8601 "$request" $status $body_bytes_sent $request_time $upstream_response_time $http_x_cogni_run_id';
  access_log %[1]s/nginx.log audit buffer=64k flush=200ms;
  client_max_body_size 32m; client_body_buffer_size 1m; client_body_temp_path %[1]s/nginx-body; proxy_temp_path %[1]s/nginx-proxy;
  fastcgi_temp_path %[1]s/nginx-f; uwsgi_temp_path %[1]s/nginx-u; scgi_temp_path %[1]s/nginx-s; keepalive_requests 1000000;
  upstream model { server %[2]s; keepalive 256; keepalive_requests 1000000; }
  server {
    listen unix:%[1]s/nginx.sock;
    location /v1/ {
      proxy_pass http://model; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 300s;
      proxy_set_header Connection ""; proxy_set_header Authorization "Bearer sk-bench-0123456789abcdef";
      proxy_set_header x-litellm-end-user-id "account"; proxy_set_header x-litellm-spend-logs-metadata '{"run_id":"run"}';
    }
  }
}`

func startNginx(ctx context.Context, dir, upstream string) (*peer, error) {
	program, err := findProgram("nginx")
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, upstream), 0o600); err != nil {
		return nil, err
	}
	p := &peer{name: "nginx", socket: filepath.Join(dir, "nginx.sock")}
	p.cmd = exec.CommandContext(ctx, program, "-c", conf, "-p", dir, "-e", filepath.Join(dir, "nginx.err"), "-g", "user "+userName()+";")
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.awaitSocket(ctx)
}

func userName() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "nobody" // ignored, with a warning, unless root starts it
}

// findProgram looks for a program also where administrators have theirs.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", errhint.With(errors.New(name+" is not installed, and there is nothing to compare with"), "run: scripts/deps.sh")
}

// startChild starts the proxy in a process of its own; guest is the socket of a
// sandbox that it serves too, or "".
func startChild(ctx context.Context, o Options, dir, upstream, guest string) (*peer, error) {
	p := &peer{name: "atoll", socket: filepath.Join(dir, "atoll.sock")}
	p.cmd = exec.CommandContext(ctx, o.Self, "proxy-child", dir, "http://"+upstream, guest)
	p.cmd.Stderr = o.Progress
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdout = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.awaitSocket(ctx)
}

func (p *peer) awaitSocket(ctx context.Context) error {
	for range 500 {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", p.socket)
		if err == nil {
			return conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%s does not serve its socket", p.name)
}

func (p *peer) stop() {
	if p.stdin != nil {
		_ = p.stdin.Close()
	} else {
		_ = p.cmd.Process.Signal(os.Interrupt)
	}
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait()
}

// cpu is the processor time of the process and its children that live.
func (p *peer) cpu() time.Duration {
	total := processCPU(p.cmd.Process.Pid)
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", p.cmd.Process.Pid))
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			total += processCPU(pid)
		}
	}
	return total
}

// processCPU reads the scheduler's own count, in nanoseconds, of every thread.
func processCPU(pid int) (total time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		if first, _, ok := strings.Cut(string(text), " "); ok {
			ns, _ := strconv.ParseInt(first, 10, 64)
			total += time.Duration(ns)
		}
	}
	return total
}

// childStatus is what the proxy's process says of itself.
type childStatus struct {
	Goroutines int   `json:"goroutines"`
	Memory     int64 `json:"memory"` // bytes
}

// status asks the proxy's process.
func (p *peer) status() (s childStatus, err error) {
	if _, err = io.WriteString(p.stdin, "status\n"); err != nil {
		return s, err
	}
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(line, &s)
}
