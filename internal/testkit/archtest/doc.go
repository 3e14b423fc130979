// Package archtest holds the rules of the house that a compiler cannot check:
// who may import whom, where each heavy dependency lives, what the guest may
// link, what policy may not do. Its test applies them to the tree; another
// feeds every rule a graph that breaks it, so that no rule is blind.
//
// To add a package, give it a place in layers. To add a rule, add it to Rules
// with its reason, and a case to the test that shows it to bite. Style of code
// within a file is the linter's matter (.golangci.yml), not this package's.
package archtest
