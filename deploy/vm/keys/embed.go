// Package keys has the public keys that sign packages which are not the distribution's.
package keys

import _ "embed" // for the keys

// NodeSource is the key of deb.nodesource.com, whose fingerprint is
// 6F71 F525 2828 41EE DAF8 51B4 2F59 B5F9 9B1B E0B4.
//
//go:embed nodesource.asc
var NodeSource []byte
