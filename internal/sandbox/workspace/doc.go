// Package workspace keeps the host directories of a sandbox: where they are,
// what is copied into them, and what an agent changed there.
//
// Two directories matter. The agent workspace belongs to the user: it holds the
// files that make an agent what it is (SOUL.md, AGENTS.md, …) and often a
// project. The copy, <workspaceRoot>/<slug>, belongs to one sandbox. Which of
// them a sandbox sees is the setting workspaceAccess:
//
//	access   /workspace               /agent                     what the agent writes
//	none     the copy, writable       absent                     stays in the copy
//	ro       the copy, read-only      agent workspace, read-only nothing
//	rw       agent workspace, writable  absent (same directory)  is the user's file
//
// Prepare makes what is missing and seeds the copy: seven files are copied from
// the agent workspace when the copy has none of that name, and never again. So
// a copy lives on between sessions while its source moves on, and what an agent
// learned there is easily lost: the semi-persistence trap. It is closed by a
// manifest of what was seeded. Drift and Changes compare the copy, the manifest
// and the source; Reseed brings the seven up to date and moves what the agent
// changed aside instead of losing it; EvolvedInCopy tells doctor when an agent
// has begun to keep its character in the copy. MEMORY.md is never seeded, for
// it is the agent's own, but it is watched like the seven.
//
// SyncSkills and StageMedia bring in the two other things an agent needs from
// the host: its skills, and what people sent it.
//
// Everything below a copy is hostile, and so is the agent workspace under rw:
// the agent may exchange directories for links while this package works there.
// Hence every path is opened below a directory held by descriptor (package
// hostpath) and no link is ever followed. What must stay out of an agent's
// reach (manifests, files moved aside, trash) is in <workspaceRoot>/.atoll,
// which is never mounted.
//
// The package starts no sandbox and decides no mounts; package plan does, from
// the Layout.
package workspace
