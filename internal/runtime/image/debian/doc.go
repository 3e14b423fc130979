// Package debian fetches packages of Debian, or of a distribution made like it, for
// the root of an image. The machine's own apt-get is asked, with its own sources,
// proxies and keys; it checks signatures and checksums. Its state is a directory of
// ours, in which no package is installed, so that everything a root needs is fetched.
// Nothing is unpacked and no script of a package runs here.
package debian
