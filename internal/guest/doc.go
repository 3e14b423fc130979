// Package guest is the half of Atoll that lives inside a sandbox, as its
// process 1: it starts, streams, reaps and ends every process there, and
// serves the host over the wire. It needs no capability, no shell, no libc and
// no file of the image.
//
// Everything else in the sandbox runs under the same user and is hostile: it may
// signal the guest, replace its socket, exhaust processes, memory and descriptors.
// Requests of the host, too, are checked against the limits of package wire. The host
// side of Atoll never imports this package.
package guest
