package checkout

import (
	"cmp"
	"path/filepath"
)

// Identity is the name and address that a person's commits have.
type Identity struct{ Name, Email string }

// PersonIdentity reads the identity from the person's own configuration of git. Fields
// are "" that it does not set; files that it includes are not read.
func PersonIdentity(getenv func(string) string) (id Identity) {
	home := getenv("HOME")
	for _, path := range []string{
		filepath.Join(cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "git", "config"),
		filepath.Join(home, ".gitconfig"),
	} {
		entries, err := readConfig(path)
		if home == "" || err != nil {
			continue // git inside works without an identity of the person
		}
		for _, e := range entries {
			switch e.name() {
			case "user.name":
				id.Name = e.value
			case "user.email":
				id.Email = e.value
			}
		}
	}
	return id
}

// Config returns the configuration of git for a home inside a sandbox: whose
// commits they are, and that repositories of other owners are used.
func (id Identity) Config() string {
	return formatConfig([]configEntry{
		{section: "user", key: "name", value: cmp.Or(id.Name, "agent")},
		{section: "user", key: "email", value: cmp.Or(id.Email, "agent@localhost")},
		{section: "safe", key: "directory", value: "*"},
	})
}
