package machine_test

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/wire"
)

// featured is a guest that announces certain features, and answers everything.
type featured struct{ features wire.Features }

func (g *featured) serve(conn net.Conn) {
	if hello, err := wire.ReadHello(conn); err == nil && hello.Features.Has(wire.FeatureGrants) {
		g.welcome(conn, hello)
	}
}

func (g *featured) welcome(conn net.Conn, hello *wire.Hello) {
	if wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "b", Features: g.features}) != nil || hello.Kind == wire.KindDirect {
		return
	}
	serveFrames(conn, func(stream net.Conn, _ *wire.Reader, req *wire.Request) {
		if req.Op == wire.OpExec && !req.Exec.Background {
			_ = wire.WriteJSON(stream, wire.FrameExit, wire.Exit{})
			return
		}
		_ = wire.WriteJSON(stream, wire.FrameResult, struct{}{})
	})
}

// TestGuestsWithoutAFeature: what needs it is refused, with an error that names
// the feature and the command that brings a newer guest; all else goes on.
func TestGuestsWithoutAFeature(t *testing.T) {
	const recreate = "atoll sandbox recreate --agent main"
	uses := map[wire.Feature]func(m *machine.Machine) error{
		wire.FeatureGrants: func(m *machine.Machine) error { return m.OpenGrant(patience(t), "g", false) },
		wire.FeatureExecWhile: func(m *machine.Machine) error {
			_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, While: "p"})
			return err
		},
		wire.FeaturePorts: func(m *machine.Machine) error {
			_, err := m.Listen(patience(t), 80, nil)
			return err
		},
		wire.FeatureFiles: func(m *machine.Machine) error {
			files, err := guestfs.New(m, []guestfs.Root{{Path: "/"}})
			check(t, err)
			return files.Mkdir(patience(t), "/x", nil)
		},
		wire.FeatureExec: func(m *machine.Machine) error {
			_, err := m.Start(patience(t), &machine.Command{Argv: []string{"true"}})
			return err
		},
	}
	for missing, use := range uses {
		t.Run(string(missing), func(t *testing.T) {
			features := slices.DeleteFunc(wire.AllFeatures(), func(f wire.Feature) bool { return f == missing })
			guest := &featured{append(features, "from-the-future")}
			m := lying(t, guest.serve, &machine.Options{Recreate: recreate})
			err := use(m)
			if !errors.Is(err, machine.ErrUnsupported) || !strings.Contains(err.Error(), string(missing)) || !strings.Contains(err.Error(), recreate) {
				t.Errorf("%v", err)
			}
			check(t, m.Ping(patience(t)))
			for other, use := range uses {
				if other == missing || other == wire.FeaturePorts || missing == wire.FeatureExec && other == wire.FeatureExecWhile {
					continue // a port needs more than an answer; and a command is a command
				}
				if err := use(m); err != nil {
					t.Errorf("%s: %v", other, err)
				}
			}
		})
	}
}

// TestUnboundWithoutAFeature: a command that comes with the hello is not sent to
// a guest that would ignore a part of it.
func TestUnboundWithoutAFeature(t *testing.T) {
	m := lying(t, func(conn net.Conn) {
		hello, err := wire.ReadHello(conn)
		switch {
		case err != nil:
		case hello.Kind == wire.KindDirect && hello.Needs.Has(wire.FeatureExecWhile):
			_ = wire.WriteWelcome(conn, &wire.Welcome{Error: wire.Fail(wire.CodeNoFeature, "not here")})
		default:
			(&featured{wire.Features{wire.FeatureExec}}).welcome(conn, hello)
		}
	}, &machine.Options{Direct: true})
	_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, While: "p"})
	if !errors.Is(err, machine.ErrUnsupported) || !strings.Contains(err.Error(), string(wire.FeatureExecWhile)) || !strings.Contains(err.Error(), "atoll sandbox recreate") {
		t.Errorf("%v", err)
	}
}
