// Package sandboxcmd has the verbs about sandboxes: run, exec, ps, logs, stop, rm,
// sandbox, tool and volumes.
package sandboxcmd
