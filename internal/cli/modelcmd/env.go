package modelcmd

import (
	"github.com/atoll-run/atoll/internal/cli/console"
)

// env is the command line at work, with the methods of this package.
type env struct{ *console.Env }
