// Package sshcmd has the verbs that let OpenSSH's programs work in sandboxes.
package sshcmd
