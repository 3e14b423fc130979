// Package agentcmd has the verbs that run an agent, or a shell, in the sandbox of
// the directory that they are called in. What they run is a preset.
package agentcmd

import "github.com/atoll-run/atoll/internal/cli/console"

// env is the command line at work, with the methods of this package.
type env struct{ *console.Env }
