// Package apparmor has the profile that lets Atoll make user namespaces where AppArmor
// bars them.
package apparmor

import "fmt"

// Path is where the profile is kept.
const Path = "/etc/apparmor.d/atoll"

// Profile returns the profile for a program, and for no other.
func Profile(program string) string {
	return fmt.Sprintf("abi <abi/4.0>,\ninclude <tunables/global>\nprofile atoll %q flags=(unconfined) {\n  userns,\n}\n", program)
}
