// Package image makes the images that sandboxes start from: which recipes there
// are, how their parameters become a build, and what happens where no registry
// answers (the base is then made from Debian's packages).
//
// The Dockerfiles themselves are in the top-level directory images. Talking to
// an engine is not done here: a runtime provides an Engine.
package image
