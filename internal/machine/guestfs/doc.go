// Package guestfs reads and changes the files of one sandbox over its machine:
// single files, directories, searches, watches and whole trees as archives. What
// the guest answers is checked against what was asked; an impossible answer
// declares the sandbox broken.
package guestfs
