// Package dns reads the questions that programs of a sandbox send to their
// resolver, and writes the answers. It sends nothing anywhere: what a name is
// answered with is the caller's decision.
package dns
