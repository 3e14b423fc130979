package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// Age is a file encrypted with age, and the file that holds an identity that
// opens it.
type Age struct{ Path, Identity string }

// Name names the source.
func (a Age) Name() string { return "encrypted file " + a.Path }

// Read decrypts the file. It may be readable by others; its identity not.
func (a Age) Read(context.Context) (Value, error) {
	v, err := a.read()
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", a.Name(), err)
	}
	return v, nil
}

func (a Age) read() (Value, error) {
	identityText, err := ReadPrivate(a.Identity)
	if err != nil {
		return Value{}, fmt.Errorf("identity %s: %w", a.Identity, err)
	}
	defer clear(identityText)
	identities, err := age.ParseIdentities(bytes.NewReader(identityText))
	if err != nil { // age's message may quote the line
		return Value{}, fmt.Errorf("identity %s: it holds no age identity", a.Identity)
	}
	sealed, err := readAny(a.Path)
	if err != nil {
		return Value{}, err
	}
	return open(a.Name(), sealed, identities)
}

func open(name string, sealed []byte, identities []age.Identity) (Value, error) {
	source := bytes.NewReader(sealed)
	reader, err := age.Decrypt(source, identities...)
	if bytes.HasPrefix(sealed, []byte(armor.Header)) {
		reader, err = age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), identities...)
	}
	if err != nil {
		return Value{}, errors.New("it cannot be decrypted with this identity")
	}
	content, err := readLimited(reader)
	if err != nil {
		return Value{}, errors.New("what is inside is damaged or too long")
	}
	defer clear(content)
	return Parse(name, content)
}
