// Package audit writes the timeline of what was asked of models, by whom, at
// what cost and what was refused: one record a request, without prompts, keys
// or queries.
//
// A writer's records are the lines of one file, a segment. Each line carries
// the hash of itself and of the line before, so no line can be changed, moved
// or taken out unseen. A segment's first line names the segments before it with
// their last hashes, so no segment can be taken away unseen; checkpoints are
// signed. A segment that a crash left open is never written to again: the next
// segment's first line says where it ended.
//
// What a record means is up to the caller; this package only bounds and
// redacts its texts.
package audit
