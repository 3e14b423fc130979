package machine_test

import (
	"errors"
	"net"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// openUnbound opens a direct connection without a parent by hand.
func openUnbound(t *testing.T, g *machinetest.Guest, hello *wire.Hello, req *wire.Request) (net.Conn, error) {
	t.Helper()
	conn, err := g.Dial(t.Context())
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	check(t, wire.OpenDirect(conn, hello, req))
	_, err = wire.ReadWelcome(conn, hello)
	return conn, err
}

// TestUnboundRefuses: a direct connection without a parent runs commands in the
// foreground and nothing else, and goes on after a refusal.
func TestUnboundRefuses(t *testing.T) {
	g, _ := listening(t)
	argv := []wire.Text{"true"}
	conn, err := openUnbound(t, g, wire.NewHello(wire.KindDirect, "by-hand", 1), &wire.Request{Op: wire.OpList, Target: &wire.Target{}})
	check(t, err)
	frames := wire.NewReader(conn)
	refused := func(name string) {
		t.Helper()
		if frame, err := frames.Frame(); err != nil || frame.Type != wire.FrameError {
			t.Errorf("%s: %v %v", name, frame.Type, err)
		}
	}
	refused("a list")
	for name, req := range map[string]*wire.Request{
		"a file":         {Op: wire.OpFileRead, File: &wire.File{RootedPath: wire.RootedPath{Root: "/", Path: "etc/passwd"}}},
		"a token":        {Op: wire.OpFileDirect, File: &wire.File{}},
		"a port":         {Op: wire.OpPortDial, Port: &wire.Port{Port: 80}},
		"a grant":        {Op: wire.OpGrantEnd, Grant: &wire.Grant{ID: "g"}},
		"the background": {Op: wire.OpExec, Exec: &wire.Exec{ID: "a", Argv: argv, Background: true}},
		"no operands":    {Op: wire.OpExec},
	} {
		check(t, wire.WriteRequest(conn, req))
		refused(name)
	}
	check(t, wire.WriteRequest(conn, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{ID: "b", Argv: argv}}))
	if frame, err := frames.Frame(); err != nil || frame.Type != wire.FrameExit && frame.Type != wire.FrameStarted { // or it is slow here
		t.Errorf("after the refusals: %v %v", frame.Type, err)
	}
}

// TestUnboundNeeds: a guest starts nothing for a hello that needs a feature that
// it does not have.
func TestUnboundNeeds(t *testing.T) {
	g, m := listening(t)
	hello := wire.NewHello(wire.KindDirect, "by-hand", 1)
	conn, err := g.Dial(t.Context())
	check(t, err)
	defer conn.Close()
	hello.Needs = wire.Features{wire.FeatureExec, "from-the-future"}
	_, err = wire.Handshake(conn, hello)
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.CodeNoFeature {
		t.Errorf("%v", err)
	}
	hello = wire.NewHello(wire.KindDirect, "by-hand", 2)
	hello.Token = "made-up"
	if _, err := openUnbound(t, g, hello, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{ID: "a", Argv: []wire.Text{"true"}}}); err == nil {
		t.Error("a made-up token was accepted")
	}
	if info, err := m.Info(patience(t)); err != nil || info.Processes != 0 {
		t.Errorf("%+v %v", info, err)
	}
}
