package access_test

import (
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

func TestScopesInclude(t *testing.T) {
	all := []access.Scope{access.Admin, access.Operator, access.Approvals, access.Run, access.Read}
	for scope, want := range map[access.Scope][]access.Scope{
		access.Admin: all, access.Operator: all[1:], access.Approvals: {access.Approvals, access.Read}, access.Run: {access.Run, access.Read}, access.Read: {access.Read}, "king": nil,
	} {
		var got []access.Scope
		for _, s := range all {
			if (&access.Caller{Scope: scope}).May(s) {
				got = append(got, s)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s includes %v, want %v", scope, got, want)
		}
	}
}
