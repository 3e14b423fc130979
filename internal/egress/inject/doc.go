// Package inject keeps the values of secrets out of sandboxes. A program inside has
// a placeholder of the same shape and length instead of each value. On the host, a
// [Set] puts the value in the place of the placeholder in the one header that the
// secret names, on requests to the hosts that it is bound to, for callers that it
// was given to. A placeholder anywhere else is a [Leak], and the request is refused.
// Answers of those hosts pass through a [Filter] that takes the value out again, in
// plain, base64, percent-escaped and JSON-escaped form.
//
// Placeholders are kept for as long as a sandbox lives, because programs inside store
// them where they store credentials.
package inject
