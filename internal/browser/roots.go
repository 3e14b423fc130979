package browser

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
)

// MaxRoots is how many certificates a browser trusts beside its own.
const MaxRoots = 100

// ErrNoCertutil is returned where certificates cannot be added to those that a browser
// trusts.
var ErrNoCertutil = errhint.With(errors.New("the browser's sandbox has no certutil, so that pages with certificates of outbound.caFile are refused"),
	"install libnss3-tools on this machine, or build the browser's image: `atoll images build browser`")

// noCertutil is the exit code of trust where certutil is missing.
const noCertutil = 3

// trust makes the database in which both programs look for certificates that they are to
// trust, with those that it reads.
const trust = `db=` + home + `/.pki/nssdb file=` + home + `/.pki/ca.pem n=0
command -v certutil >/dev/null || exit 3
mkdir -p "$db" && certutil -d sql:"$db" -N --empty-password || exit 1
while IFS= read -r line; do
	case $line in -----BEGIN*) : >"$file";; esac
	printf '%s\n' "$line" >>"$file"
	case $line in -----END*) n=$((n+1)); certutil -d sql:"$db" -A -t C,, -n "company $n" -i "$file" || exit 1;; esac
done`

// trustRoots has the browser that is started next trust certificates, in DER, beside its
// own.
func trustRoots(ctx context.Context, m *machine.Machine, roots [][]byte) error {
	if len(roots) == 0 {
		return nil
	}
	if len(roots) > MaxRoots {
		return errhint.With(fmt.Errorf("outbound.caFile has %d certificates, and a browser takes %d", len(roots), MaxRoots), "leave those in the file that are the company's own")
	}
	var text, said bytes.Buffer
	for _, der := range roots {
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return err
		}
	}
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", trust}, Env: []string{"HOME=" + home}, Stdin: &text, Stderr: &said, OutputLimit: maxPrograms})
	switch {
	case err != nil:
		return err
	case result.ExitCode == noCertutil:
		return ErrNoCertutil
	case result.ExitCode != 0:
		return fmt.Errorf("certificates of outbound.caFile: %.300q", lastLine(said.String()))
	}
	return nil
}
