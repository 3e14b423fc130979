// Package interpretertest tests the image code-interpreter: its server with kernels that
// are scripts, and the image itself, built without an engine, in a sandbox.
package interpretertest
