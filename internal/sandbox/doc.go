// Package sandbox is the domain: what a sandbox is (Spec), what machinery must
// offer to make one (Runtime, Instance), and the Manager that keeps at most one
// live sandbox per name: ensure, reuse, recreate, prune, adopt.
//
// It knows no engine, no config file and no git. A runtime only has to produce
// a machine with a wire into it; commands and files are package machine's work.
package sandbox
