// Package vmkeys has the keys of vm: their form in the file, their defaults, and how a
// profile is merged with what all profiles share and with the variables VM_CPUS, VM_MEMORY
// and VM_DISK.
package vmkeys
