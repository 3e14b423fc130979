package inspect

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // what the format has; it guards nothing secret
	"encoding/binary"
	"fmt"
	"math"
	"time"
	"unicode/utf16"
)

// javaPassword is the customary password of a Java key store with public certificates.
const javaPassword = "changeit"

// The numbers of the format JKS.
const (
	jksMagic   = 0xfeedfeed
	jksVersion = 2
	jksTrusted = 2 // an entry that is a trusted certificate
)

// javaStore returns certificates as a key store in the format JKS, which every Java
// reads.
func javaStore(certificates [][]byte, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	number := func(n uint32) { b.Write(binary.BigEndian.AppendUint32(nil, n)) }
	text := func(s string) {
		b.Write(binary.BigEndian.AppendUint16(nil, uint16(len(s))))
		b.WriteString(s)
	}
	if len(certificates) > math.MaxUint16 {
		return nil, fmt.Errorf("%d roots are too many", len(certificates))
	}
	number(jksMagic)
	number(jksVersion)
	number(uint32(len(certificates)))
	for i, der := range certificates {
		number(jksTrusted)
		text(fmt.Sprintf("root-%d", i))
		b.Write(binary.BigEndian.AppendUint64(nil, uint64(made.UnixMilli())))
		text("X.509")
		number(uint32(len(der)))
		b.Write(der)
	}
	b.Write(javaDigest(b.Bytes()))
	return b.Bytes(), nil
}

// javaDigest is the checksum of a key store, which the password goes into.
func javaDigest(content []byte) []byte {
	h := sha1.New() //nolint:gosec // see above
	for _, c := range utf16.Encode([]rune(javaPassword)) {
		h.Write(binary.BigEndian.AppendUint16(nil, c))
	}
	h.Write([]byte("Mighty Aphrodite"))
	h.Write(content)
	return h.Sum(nil)
}
