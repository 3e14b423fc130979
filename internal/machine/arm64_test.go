package machine_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
)

// TestGuestOnARM64 runs the guest for arm64 in an emulator of user programs: the
// handshake, commands, processes, files, ports and grants. The commands in the
// sandbox are the host's own programs.
func TestGuestOnARM64(t *testing.T) {
	options := recordable("")
	options.Arch = "arm64"
	m := machinetest.Start(t, options).Machine(t, nil)
	info, err := m.Info(patience(t))
	check(t, err)
	if info.Arch != "arm64" {
		t.Errorf("it is a guest for %s", info.Arch)
	}
	conversation(t, m, freePorts(t))
	t.Run("grants", func(t *testing.T) {
		check(t, m.OpenGrant(patience(t), "g", false))
		id, err := m.Start(patience(t), &machine.Command{Argv: []string{"sh", "-c", "setsid sleep 600 & sleep 600"}, Grant: "g"})
		check(t, err)
		check(t, m.EndGrant(patience(t), "g"))
		_, err = m.Wait(patience(t), id)
		check(t, err)
		if left := alive(t, m); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
		_, err = m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, Grant: "g"})
		wantErr(t, err, machine.ErrNoGrant)
	})
}
