package sandbox

import "time"

// HotWindow is how long after its last use a running sandbox is kept although
// its configuration has changed: a person or an agent may be working in it.
const HotWindow = 5 * time.Minute

// observation is what Ensure knows before it acts.
type observation struct {
	exists     bool
	registered bool // it has a row
	state      State
	unfinished bool // a crash interrupted its creation or removal
	configHash string
	mountsHash string
	lastUsed   time.Time // zero if unknown
	inUse      bool      // somebody else holds a lease on it
	detached   bool      // what it has mounted is no longer what the host has there
	unlimited  error     // which of its limits are not in force any more
}

// action is what Ensure does about an observation.
type action string

const (
	actCreate   action = "create"
	actStart    action = "start"
	actResume   action = "resume"
	actReuse    action = "reuse"
	actKeepHot  action = "keep"     // the old configuration stays in force for now
	actRefuse   action = "refuse"   // in use or hot, and not within what is asked for
	actRestart  action = "restart"  // end it, and start it with its limits again
	actRecreate action = "recreate" // remove, then create
)

// decide is the whole reuse policy.
func decide(o observation, spec *Spec, now time.Time) action {
	switch {
	case !o.exists:
		return actCreate
	case o.state == StateDead || o.unfinished && !o.inUse: // whoever is in it found it finished
		return actRecreate
	case (o.detached || o.unlimited != nil) && o.inUse:
		return actRefuse
	case o.detached:
		return actRecreate
	case o.unlimited != nil && o.configHash == spec.ConfigHash:
		return actRestart
	case o.unlimited != nil:
		return actRecreate
	case o.configHash == spec.ConfigHash:
		return actionFor(o.state)
	case !isHot(o, now), spec.ReplaceIdle && !o.inUse:
		return actRecreate
	case o.mountsHash != spec.MountsHash || spec.Exact:
		return actRefuse
	case o.state == StateRunning:
		return actKeepHot
	default:
		return actionFor(o.state)
	}
}

// actionFor is what brings an unchanged sandbox into use.
func actionFor(s State) action {
	switch s {
	case StateRunning:
		return actReuse
	case StatePaused:
		return actResume
	default:
		return actStart
	}
}

// isHot reports whether a sandbox with another configuration must be kept. One
// whose last use is unknown counts as just used.
func isHot(o observation, now time.Time) bool {
	alive := o.state == StateRunning || o.state == StatePaused
	recent := o.lastUsed.IsZero() || now.Sub(o.lastUsed) < HotWindow
	return o.inUse || alive && recent
}
