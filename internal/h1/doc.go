// Package h1 reads HTTP/1.1 requests on a connection and writes the answers,
// strictly and without allocating for each message. It does not look into
// bodies. Requests to upstreams are net/http's.
//
// It exists because a proxy in front of a key must not accept what two parsers
// could read differently, and net/http's server accepts much of it: a head with
// both lengths, folded lines, bare line feeds, a space before a colon, twin
// Content-Length or Host fields, lists of transfer codings, chunk extensions
// and trailers of a caller are refused. A fuzz test holds it against net/http:
// whatever is accepted here, net/http reads the same.
//
// A [Reader] owns one buffer. What it hands out (names, values, pieces of a
// body) lies in that buffer and is valid until the message after it is read;
// pieces only until the next piece.
package h1
