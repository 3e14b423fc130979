package wire

// OpIdentify tells a guest of a pool, once in its life, whose sandbox it is from now on.
// It uses Request.Identity and answers the Identity that the guest has: the same one
// again is answered in the same way, any other is refused with CodeTaken. It belongs to
// the feature identity.
const OpIdentify Op = "identify"

// Identity is whom a sandbox of a pool was given to.
type Identity struct {
	Claim string `json:"claim"` // the id of the claim
	Name  Text   `json:"name"`  // of the sandbox, from then on
}

// MaxIdentityName is how many bytes the name of an Identity may have.
const MaxIdentityName = 63

// CodeTaken is a guest that already has another identity.
const CodeTaken Code = "taken"

// Valid reports whether the identity has an id and a name of a permitted length.
func (i *Identity) Valid() bool {
	return ValidID(i.Claim) && i.Name != "" && len(i.Name) <= MaxIdentityName
}
