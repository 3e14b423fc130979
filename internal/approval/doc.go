// Package approval is the queue of questions to a person: may these commits be
// pushed, may this command run. A question carries the evidence for it and the
// evidence's hash; an answer names the hash, so it holds for what the person saw
// and for nothing else.
//
//	Ask ──▶ open ──Answer──▶ answered
//	          ├──time────▶ expired   (with the default answer)
//	          └──Ask, other evidence──▶ replaced
//
// Questions are rows of the installation's database: they survive a restart, all
// processes see the same ones, and of several answers the first counts. Nothing
// inside a sandbox can reach the queue: the database is in the state directory,
// which no mount shows, and answers come from the command line of its owner or from
// a token of the gateway that has the scope for it.
package approval
