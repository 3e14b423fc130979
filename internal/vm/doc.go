// Package vm makes, starts, sets up and removes the virtual machine of a profile.
package vm
