package guestfs

import "strings"

// Contradicts reports whether two versions of one file are certainly those of
// different states. Versions that are not equal need not be: the one of a file
// that was just written holds more than a later one. Only the guest can
// compare them for sure, when it changes the file IfVersion.
func (v Version) Contradicts(other Version) bool {
	times, hash, hashed := strings.Cut(string(v), "+")
	otherTimes, otherHash, otherHashed := strings.Cut(string(other), "+")
	return times != otherTimes || hashed && otherHashed && hash != otherHash
}
