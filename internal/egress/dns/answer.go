package dns

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// TTL is how many seconds a program may keep an answer. It is short, because a
// name can lose its address to another one.
const TTL = 5

// Address answers with an IPv4 address.
func (q *Question) Address(a netip.Addr) []byte {
	return q.answer(dnsmessage.RCodeSuccess, &dnsmessage.AResource{A: a.As4()})
}

// Pointer answers with a name.
func (q *Question) Pointer(name string) []byte {
	to, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return q.NotFound()
	}
	return q.answer(dnsmessage.RCodeSuccess, &dnsmessage.PTRResource{PTR: to})
}

// NoData answers that the name exists, without a record of the type asked for.
func (q *Question) NoData() []byte { return q.answer(dnsmessage.RCodeSuccess, nil) }

// NotFound answers that the name does not exist.
func (q *Question) NotFound() []byte { return q.answer(dnsmessage.RCodeNameError, nil) }

// Failure answers that the name cannot be resolved now.
func (q *Question) Failure() []byte { return q.answer(dnsmessage.RCodeServerFailure, nil) }

// answer returns the message with at most one record. The question is repeated
// as it was asked, upper case included: some programs compare it.
func (q *Question) answer(code dnsmessage.RCode, body dnsmessage.ResourceBody) []byte {
	m := dnsmessage.Message{Header: q.responseHeader(code), Questions: []dnsmessage.Question{q.question}}
	if body != nil {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.question.Name, Class: q.question.Class, TTL: TTL}, Body: body}}
	}
	packed, err := m.Pack()
	if err != nil {
		return q.fail(dnsmessage.RCodeServerFailure)
	}
	return packed
}

// fail returns an answer without the question, for one that cannot be read.
func (q *Question) fail(code dnsmessage.RCode) []byte {
	m := dnsmessage.Message{Header: q.responseHeader(code)}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// responseHeader has both "authoritative" and "recursion available", because
// glibc takes an empty answer with neither for a broken server.
func (q *Question) responseHeader(code dnsmessage.RCode) dnsmessage.Header {
	return dnsmessage.Header{
		ID: q.header.ID, Response: true, Authoritative: true, RecursionDesired: q.header.RecursionDesired, RecursionAvailable: true, RCode: code,
	}
}

const reverseZone = ".in-addr.arpa"

// ReverseAddress returns the IPv4 address whose name is asked for: that of
// 4.3.2.1.in-addr.arpa is 1.2.3.4.
func (q *Question) ReverseAddress() (netip.Addr, bool) {
	text, ok := strings.CutSuffix(strings.ToLower(q.Name), reverseZone)
	parts := strings.Split(text, ".")
	if !ok || len(parts) != 4 {
		return netip.Addr{}, false
	}
	slices.Reverse(parts)
	var a [4]byte
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		a[i] = byte(n)
	}
	return netip.AddrFrom4(a), true
}
