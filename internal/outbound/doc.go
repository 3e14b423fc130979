// Package outbound makes the connections that leave this host: to models, to web
// pages, to the relay's server and to registries of images.
//
// A [Dialer] resolves a name once, checks every address against a [Rule], and
// connects to an address that it checked, so a name that answers differently the
// second time gains nothing. A [Host] has the settings that all callers share:
// the proxies of the environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY) and the
// certificates of a company beside those of the system. It builds transports of
// net/http from them.
//
// Behind a proxy the name is resolved by the proxy, so the address that it
// connects to cannot be checked here. [Host.Guarded] then resolves the name with
// the host's own resolver and refuses it unless every address is permitted; a
// name that cannot be resolved here is refused too.
package outbound
