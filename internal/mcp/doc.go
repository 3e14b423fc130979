// Package mcp serves the tools of a sandbox over the Model Context Protocol: to a client
// that starts this program and speaks over its standard streams, and to clients of the
// gateway.
//
// The tools are those of package tool, with a prefix to their names, and a few about the
// sandbox itself. A call passes the same policy as a call of an agent. What a person
// decides (approving, undoing, widening) is no tool.
package mcp
