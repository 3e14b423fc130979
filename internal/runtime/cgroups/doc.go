// Package cgroups limits what a group of processes may use, with control groups
// of version 1, version 2, or a host that mixes both: each controller is used
// in the hierarchy that has it.
//
// A group is made where the caller may make one: below the root of a hierarchy
// for root, below a group that was delegated to him for an ordinary user. What
// cannot be limited is reported before anything is made.
package cgroups
