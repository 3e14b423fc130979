package provide

import (
	"errors"
	"io/fs"
	"os"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// gitConfig is the configuration of git in a home.
const gitConfig = ".gitconfig"

// writeGitConfig gives a home the person's name and address, so that commits can be
// made inside. A file that is there stays as it is: the home belongs to the sandbox,
// and nothing that it has there is followed.
func (s *Settings) writeGitConfig(p *plan.Plan, home string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	file, err := root.OpenFile(gitConfig, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	_, err = file.WriteString(checkout.PersonIdentity(s.Getenv).Config())
	if owner := numericUser(p.Spec.User); owner != nil && os.Geteuid() == 0 {
		err = errors.Join(err, file.Chown(owner.UID, owner.GID))
	}
	return errors.Join(err, file.Close())
}
