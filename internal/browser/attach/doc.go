// Package attach lets a program use the DevTools protocol of a browser in a sandbox. Each
// program has a connection of its own to the browser, and a Filter between them: it passes
// on the calls of the method table, for sessions and browser contexts that are not another
// program's. Both sides are hostile input: whoever breaks a bound ends this connection
// alone.
package attach
