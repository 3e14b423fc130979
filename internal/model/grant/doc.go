// Package grant says who pays for what a sandbox asks of the outside, what it may
// ask for, and until when.
//
// The wire tells which sandbox calls, and that is not enough: several runs may share
// one sandbox, at once or one after the other. So a run opens a [Grant] among the
// sandbox's [Grants], starts its processes under it, and closes it. All grants that are
// open in a sandbox at the same time are of one account, over all processes of the
// host. Closing one ends every process that was started under it and every connection
// that was accepted under it; so does its expiry. The others go on.
//
// A server for sandboxes (the model proxy, the egress proxy, the git relay) takes
// connections from a [Listener] and asks [Of] for their grants. What the caller itself
// claims, in headers or otherwise, is never used.
//
// How a connection is matched with a grant: the guest finds the process at the other
// end of it and reads the mark that every process inherits from the exec it descends
// from. It returns the id of the grant which that exec was started under, and the host
// looks it up among the open ones. Ids are random and known to the guest only; a guest
// that lies can only name another grant of the same sandbox, and so of the same account.
//
// The package knows no sandbox, no wire and no money: a [Sandbox] is what it needs of
// the first, and the limits in [Terms] are numbers that others enforce.
package grant
