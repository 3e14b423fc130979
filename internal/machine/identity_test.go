package machine_test

import (
	"errors"
	"net"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// TestIdentityIsAcceptedOnce: the same claim may come again, over another wire too;
// every other one is refused.
func TestIdentityIsAcceptedOnce(t *testing.T) {
	guest := machinetest.Start(t, nil)
	first, second := guest.Machine(t, nil), guest.Machine(t, nil)
	check(t, first.Identify(patience(t), "claim-1", "box"))
	check(t, second.Identify(patience(t), "claim-1", "box"))
	for _, other := range [][2]string{{"claim-2", "box"}, {"claim-1", "other"}, {"claim-2", "other"}} {
		if err := second.Identify(patience(t), other[0], other[1]); !errors.Is(err, machine.ErrTaken) {
			t.Errorf("%v: %v", other, err)
		}
	}
	check(t, first.Identify(patience(t), "claim-1", "box"))
}

// TestMalformedIdentity is refused before anything is sent, and by the guest.
func TestMalformedIdentity(t *testing.T) {
	m := machinetest.Start(t, nil).Machine(t, nil)
	for _, bad := range [][2]string{{"", "box"}, {"c", ""}, {"a b", "box"}, {"c", string(make([]byte, wire.MaxIdentityName+1))}} {
		if m.Identify(patience(t), bad[0], bad[1]) == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	err := m.Call(patience(t), &machine.UnaryCall{Request: &wire.Request{Op: wire.OpIdentify, Identity: &wire.Identity{Claim: "c"}}}, &struct{}{})
	if !errors.Is(err, machine.ErrInvalid) {
		t.Error(err)
	}
	check(t, m.Identify(patience(t), "c", "box"))
}

// TestGuestThatAnswersAnotherIdentity is broken: it must not be used by either name.
func TestGuestThatAnswersAnotherIdentity(t *testing.T) {
	answers := map[string]any{
		"another": wire.Identity{Claim: "claim-2", Name: "box"}, "none": struct{}{}, "no object": "yes",
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			m := answeringTwice(t, func(req *wire.Request) any {
				if req.Op == wire.OpIdentify {
					return answer
				}
				return struct{}{}
			})
			check(t, m.Ping(patience(t)))
			if err := m.Identify(patience(t), "claim-1", "box"); !errors.Is(err, machine.ErrBroken) {
				t.Errorf("%v", err)
			}
			if m.Ping(patience(t)) == nil {
				t.Error("it is used further")
			}
		})
	}
}

// TestGuestThatAcceptsTwoIdentities and says so twice is not refused by the machine: the
// registry decides who has it. What it says more is not read as another call's answer.
func TestGuestThatAcceptsTwoIdentities(t *testing.T) {
	m := answeringTwice(t, func(req *wire.Request) any {
		if req.Identity != nil {
			return req.Identity
		}
		return struct{}{}
	})
	for _, claim := range []string{"claim-1", "claim-2"} {
		check(t, m.Identify(patience(t), claim, "box"))
	}
	check(t, m.Ping(patience(t)))
}

// answeringTwice returns a machine whose guest answers every request twice: as the function
// says, and then with an identity.
func answeringTwice(t *testing.T, answer func(*wire.Request) any) *machine.Machine {
	t.Helper()
	return lying(t, func(conn net.Conn) {
		hello, err := wire.ReadHello(conn)
		if err != nil || wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "b", Features: wire.AllFeatures()}) != nil || hello.Kind == wire.KindDirect {
			return
		}
		serveFrames(conn, func(stream net.Conn, _ *wire.Reader, req *wire.Request) {
			_ = wire.WriteJSON(stream, wire.FrameResult, answer(req))
			_ = wire.WriteJSON(stream, wire.FrameResult, wire.Identity{Claim: "x", Name: "y"})
		})
	}, nil)
}
