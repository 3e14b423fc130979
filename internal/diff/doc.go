// Package diff compares two texts line by line and writes what changed as a
// unified diff, the form that people, models and patch(1) read. It finds a
// smallest set of changes where that is affordable and a larger, still correct
// one where it is not. Where texts come from, and applying a diff, is not its
// matter: internal/tool/patch reads another format.
package diff
