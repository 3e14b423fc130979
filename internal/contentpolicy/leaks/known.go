package leaks

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
)

// RuleKnown is the rule of secrets that are the host's own.
const RuleKnown = "host-secret"

// minKnown is the length from which a secret is looked for: a shorter one would
// be found where it is not.
const minKnown = 8

// secret is how one secret may look in a text.
type secret [][]byte

// encodings lists each secret as it is, in hexadecimal and in base64. A hostile
// program can always hide a secret in another way.
func encodings(known [][]byte) []secret {
	var secrets []secret
	for _, value := range known {
		if len(value) < minKnown {
			continue
		}
		looks := secret{value, []byte(hex.EncodeToString(value))}
		for shift := range 3 {
			looks = append(looks, middleOfBase64(value, shift))
		}
		secrets = append(secrets, looks)
	}
	return secrets
}

// middleOfBase64 is the part of an encoding that does not depend on what stands
// before and after the value, if it begins so many bytes after a group.
func middleOfBase64(value []byte, shift int) []byte {
	padded := append(make([]byte, shift), value...)
	encoded := base64.RawStdEncoding.EncodeToString(padded[:len(padded)/3*3])
	if shift > 0 {
		encoded = encoded[4:]
	}
	return []byte(encoded)
}

func (s *Scanner) findKnown(text []byte) []Leak {
	var leaks []Leak
	for _, looks := range s.known {
		for _, look := range looks {
			if before, _, found := bytes.Cut(text, look); found {
				leaks = append(leaks, Leak{Rule: RuleKnown, Line: 1 + bytes.Count(before, []byte("\n"))})
				break
			}
		}
	}
	return leaks
}
