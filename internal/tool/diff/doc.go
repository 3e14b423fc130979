// Package diff writes what changed between two texts as a unified diff, the form
// that people, models and patch(1) read, with safe names and a limit on its size.
// Where texts come from, and applying a diff, is not its matter:
// internal/tool/patch reads another format.
package diff
