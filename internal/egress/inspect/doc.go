// Package inspect serves connections of a sandbox whose requests are judged one by
// one: by method and path, and with secrets that the host puts in.
//
// The TLS of such a connection ends on the host, with a certificate for the one name
// that was judged, signed by a CA that only this sandbox trusts. The key of the CA
// stays on the host. What is inside must be HTTP/1.1 in the strict reading of package
// h1; each request must name the same host, is judged by the rules, recorded, and only
// then sent to the server, whose certificate is verified with the roots of the host.
// Redirects are handed to the program and not followed.
//
// The same is done for plain HTTP on port 80, with or without TLS to the server.
package inspect
