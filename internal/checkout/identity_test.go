package checkout_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
)

// The identity is the one that git has outside of repositories, and nothing else
// of the person's configuration is shown.
func TestPersonIdentity(t *testing.T) {
	home := t.TempDir()
	shell(t, home, "export HOME=$PWD; git config --global user.name 'A \"B\" C'; git config --global http.extraHeader "+canary+"; mkdir -p .config/git; git config -f .config/git/config user.name other; git config -f .config/git/config user.email a@b")
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	id := checkout.PersonIdentity(getenv)
	if id.Name != `A "B" C` || id.Email != "a@b" {
		t.Errorf("%+v", id)
	}
	if err := os.WriteFile(filepath.Join(home, "shown"), []byte(id.Config()), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := shell(t, home, "git config -f shown --list"); got != "user.name=A \"B\" C\nuser.email=a@b\nsafe.directory=*" {
		t.Errorf("the sandbox sees %s", got)
	}
	if id := checkout.PersonIdentity(func(string) string { return "" }); id != (checkout.Identity{}) {
		t.Errorf("without a home: %+v", id)
	}
}
