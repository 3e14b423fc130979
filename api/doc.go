// Package api holds the types of the gateway's HTTP interface: requests, answers
// and problems. It imports the standard library only, so that a client program
// links nothing else of Atoll.
//
// The tags are the contract: json names a member, query a parameter, and doc is its
// description in the OpenAPI document, which is made from these types.
package api
