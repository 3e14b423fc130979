package netclient

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	header4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	link4   = "eth0\t00014D0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	any4    = "eth0\t00000000\t01014D0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
	any6    = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth0\n"
	none6   = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo\n"
)

func TestDefaultRoute(t *testing.T) {
	for tables, want := range map[[2]string]bool{
		{"", ""}:                        false,
		{header4, none6}:                false,
		{header4 + link4, none6}:        false,
		{header4 + link4 + any4, ""}:    true,
		{header4, any6 + none6}:         true,
		{strings.Repeat("x ", 9), any4}: false,
	} {
		files := fstest.MapFS{"route": {Data: []byte(tables[0])}, "ipv6_route": {Data: []byte(tables[1])}}
		if got := hasDefaultRoute(files); got != want {
			t.Errorf("%q: %v", tables, got)
		}
	}
	if hasDefaultRoute(fstest.MapFS{}) {
		t.Error("a route where there are no tables")
	}
}

// TestExitCode: a refusal by the other end is not a network that is closed.
func TestExitCode(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	if err := Connect(address, time.Second, strings.NewReader(""), io.Discard); ExitCode(err) != wire.ConnectFailed {
		t.Errorf("%v: %d", err, ExitCode(err))
	}
	if err := Connect("no address", time.Second, strings.NewReader(""), io.Discard); ExitCode(err) != wire.ConnectFailed {
		t.Errorf("%v: %d", err, ExitCode(err))
	}
	for _, cause := range []error{os.ErrDeadlineExceeded, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.EPERM} {
		err := fmt.Errorf("dial: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", cause)})
		if code := ExitCode(err); code != wire.ConnectClosed && code != wire.ConnectNoRoute { // this machine may have no route
			t.Errorf("%v: %d", err, code)
		}
	}
	if code := ExitCode(errors.New("?")); code != wire.ConnectFailed {
		t.Errorf("%d", code)
	}
}
