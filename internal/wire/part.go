package wire

// WithPart calls f with one part of a request, or fails if the request lacks it.
func WithPart[T any](part *T, f func(*T) error) error {
	if part == nil {
		return Fail(CodeInvalid, "the request lacks its operands")
	}
	return f(part)
}
