// Package dockercli is a docker command line over Atoll's sandboxes: the verbs,
// formats, error texts and exit codes that programs which drive `docker` rely
// on. A container is a sandbox and a record of what was asked for; the sandbox
// is made and kept by package sandbox, and work in it goes over its wire.
//
// It narrows and never widens: a flag that would open a sandbox, and a flag
// whose meaning cannot be kept here, is refused by name. What a spec may hold
// is decided behind the Sandboxes interface, which package containers implements.
package dockercli
