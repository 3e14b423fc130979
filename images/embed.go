// Package images holds the Dockerfiles of the sandbox images, embedded, so that
// an installed atoll can build them without this tree. One directory an image;
// local has the scripts that build images in a sandbox, without an engine;
// base makes a root file system from Debian's packages, openclaw/base.sh the
// image of OpenClaw from npm's, where no registry answers; layers are the parts of
// a Dockerfile that can be put on any of them. What lies in an image's files is put
// into its root, by the same paths.
//
// Package image builds them.
package images

import "embed"

// Files are the Dockerfiles and what they need, by the paths of this directory.
//
//go:embed base browser code-interpreter/Dockerfile code-interpreter/files common extend layers local openclaw pnpm-store sandbox
var Files embed.FS
