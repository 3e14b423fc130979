// Package runcmd has the verbs about agents, their runs and their commits: agent,
// demo, runs and relay.
package runcmd
