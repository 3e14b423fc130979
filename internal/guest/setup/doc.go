// Package setup turns the process that calls it into a sandbox of the Linux runtime. The
// runtime has started it in new namespaces, with every capability in its own user
// namespace and none outside. It mounts the file tree, drops the capabilities, and
// executes the guest from the read-only copy inside. Privileges are dropped on one
// thread; execve ends the others, so that none keeps more.
//
// No hostile code runs yet. But images and host directories are not trusted: names
// inside them are resolved so that they cannot lead out, and everything is mounted by
// descriptor.
package setup
