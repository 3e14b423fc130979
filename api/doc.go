// Package api holds what is said over the gateway's HTTP interface: requests,
// answers and problems. It needs the standard library only, so that a program
// that talks to a gateway links nothing else of Atoll.
//
// The tags are the contract: json names a member, query a parameter, doc says what
// it means in the OpenAPI document, which is made from these types.
package api
