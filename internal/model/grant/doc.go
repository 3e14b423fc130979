// Package grant says who pays for what a sandbox asks of the outside, what it may
// ask for, and until when.
//
// The wire tells which sandbox calls, and that is not enough: two runs may follow
// each other in one sandbox. So a run opens a [Grant] at the sandbox's [Desk],
// starts its processes under it, and closes it. At most one is open at a time,
// over all processes of the host. Closing it ends every process that was started
// under it and every connection that was accepted under it; so does its expiry.
//
// Who serves something to sandboxes (the model proxy, the egress proxy, the git
// relay) takes connections from a [Listener] and asks [Of] whose they are. What
// the caller itself says, in headers or otherwise, is never asked.
//
// How a connection is matched with a grant: the guest finds the process at the
// other end of it and looks at the mark that every process inherits from the
// exec it descends from. It tells the name of the grant which that exec was
// started under, and the host compares it with the one that is open. Names are
// random and told to nobody but the guest; a guest that lies can only lie about
// processes of its own sandbox, of which the open grant is the only one.
//
// The package knows no sandbox, no wire and no money: a [Place] is what it needs
// of the first, and the limits in [Terms] are numbers that others obey.
package grant
