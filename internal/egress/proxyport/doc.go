// Package proxyport reads what programs ask of a proxy: CONNECT and requests
// with a whole URL of HTTP, and CONNECT of SOCKS5 with a name. It decides nothing
// and connects to nothing. Addresses instead of names are handed on as text, for
// the caller to refuse.
package proxyport
