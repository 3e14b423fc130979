// Package overlay keeps what a sandbox changes in a directory of the host apart
// from that directory. The directory is the base and is never written to here;
// the changes are either the upper directory of a kernel overlay or a copy of
// the base with a manifest. The package chooses between the two, prepares them,
// and reads the changes back for the sync gate.
//
// Everything above the base is hostile: it is read by descriptor, no link is
// followed, no pipe waited for, no device opened. Mounting is the runtimes' part.
package overlay
