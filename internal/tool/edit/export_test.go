package edit

// Options are what an edit may ask for beyond the two pieces.
type Options struct {
	All bool // replace every occurrence; otherwise there must be only one
}

// Replace replaces old by replacement in content.
func Replace(content, old, replacement string, options Options) (Result, error) {
	return apply(content, []Edit{{Old: old, New: replacement, All: options.All}})
}
