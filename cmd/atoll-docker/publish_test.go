package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// reach asks a published port for a page until it answers.
func reach(t *testing.T, address string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/hostname")
		if err == nil {
			text, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			return string(text)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// A published port is reached on 127.0.0.1 while its container runs, on every machinery,
// and ends with it.
func TestPublishedPorts(t *testing.T) {
	t.Parallel()
	for _, m := range machineries() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			d := ourDock(t, m)
			d.say("", "create --name NAME --network none --hostname published -p 127.0.0.1::8000 IMAGE busybox httpd -f -p 8000 -h /etc")
			if got := d.say("", "port NAME 8000/tcp"); got.Code == 0 {
				t.Errorf("of a container that does not run: %+v", got)
			}
			if got := d.say("", "start NAME"); got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			address := strings.TrimSpace(d.say("", "port NAME 8000/tcp").Out)
			if got := reach(t, address); got != "published\n" || !strings.HasPrefix(address, "127.0.0.1:") {
				t.Errorf("%s: %q", address, got)
			}
			_, port, _ := strings.Cut(address, ":")
			if got := d.say("", "ps --format {{.Ports}}"); !strings.Contains(got.Out, fmt.Sprintf("127.0.0.1:%s->8000/tcp", port)) {
				t.Errorf("%+v", got)
			}
			d.say("", "rm -f NAME")
			for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
				if err != nil {
					break
				}
				_ = conn.Close()
				if time.Now().After(end) {
					t.Fatal("the port outlives its container")
				}
			}
		})
	}
}
