package sandbox_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

func TestBare(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Subject{
		Image: sandboxtest.BareImage,
		Open: func(t *testing.T, stateDir string) sandbox.Runtime {
			return sandboxtest.NewBare(t, stateDir)
		},
	})
}
