package wire

// The operations on grants, since version 2. Each uses Request.Grant and answers
// an empty Result. Processes are started under a grant with Exec.Grant.
//
//	open  ends everything that was started under another grant, then makes this
//	      one the sandbox's only
//	end   ends everything that was started under it, and it; answers the same if
//	      it is not open, because then nothing of it is left
const (
	OpGrantOpen Op = "grant.open"
	OpGrantEnd  Op = "grant.end"
)

// Grant names a grant.
type Grant struct {
	ID      string `json:"id"`
	GraceMs int64  `json:"graceMs,omitempty"` // between TERM and KILL; 0: only KILL
}

// CodeNoGrant is an exec under a grant that is not the open one.
const CodeNoGrant Code = "no_grant"
