// Package setup builds the walls of a sandbox of the Linux runtime around the
// process that calls it. The runtime has started it in fresh namespaces, with
// every capability in its own user namespace and none outside; it makes the file
// tree, gives up the capabilities, and becomes the guest by executing it anew
// from the read-only copy inside, on one thread, so that no thread remains that
// could do more.
//
// Nothing hostile runs yet. But images and host directories are not trusted:
// names inside them are resolved so that they cannot lead out, and everything is
// mounted by descriptor.
package setup
