package escapetest

// Descriptors in flight between sockets, which the kernel counts by user: a few,
// and more than the share of one sandbox.
const (
	someFlight  = "1000"
	largeFlight = "17000"
)

// descriptorsInFlight sends descriptors that no process receives. They are
// bounded by the limit of open files, which engines choose themselves,
// those of nodes too.
func descriptorsInFlight(a *arena) {
	c := a.start()
	if out, result := c.attack("flight", someFlight); result.ExitCode != 1 {
		a.t.Errorf("not even a few can be sent (%d)\n%s", result.ExitCode, out)
	}
	if !a.Engine && !a.Copies {
		c.mustStop(bomb{name: "flight", large: []string{"flight", largeFlight}})
	}
	c.alive()
}
