package policy

// LastBinds keeps, of several binds for one target, the last. What is kept
// stays in order and as written.
func LastBinds(binds []string) []string { return lastPerTarget(binds, bindTarget) }
