package steps

import (
	"bytes"
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/config/json5/edit"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

// OpenClawFile is the configuration of the OpenClaw inside. It begins as a copy of the
// mounted one, which stays as it is.
const OpenClawFile = gatewayHome + "/.openclaw/openclaw.json"

// Edit changes a file inside, whose other content stays as it is.
type Edit struct {
	Path  string
	Begin string // file that it begins as, if that is there
	Owner string
	To    func(old []byte) ([]byte, error)
}

// ensure changes the file if the change changes anything; what it replaces is kept
// beside it.
func (e *Edit) ensure(ctx context.Context, guest Guest) (changed bool, err error) {
	old, err := guest.Run(ctx, fmt.Sprintf("cat %s 2>/dev/null || :", e.Path), nil)
	if err != nil {
		return false, err
	}
	begin := old
	if old == "" {
		if begin, err = guest.Run(ctx, fmt.Sprintf("cat %s 2>/dev/null || :", e.Begin), nil); err != nil {
			return false, err
		}
	}
	text, err := e.To([]byte(begin))
	if err != nil {
		return false, fmt.Errorf("%s: %w", e.Path, err)
	}
	if string(text) == old {
		return false, nil
	}
	write := ownedFile(e.Path, e.Owner, "0600", text)
	if old != "" {
		write.Apply = fmt.Sprintf("cp -p %s %[1]s.before-atoll && ", e.Path) + write.Apply
	}
	_, err = guest.Run(ctx, write.Apply, bytes.NewReader(text))
	return true, err
}

// openClawSettings are the paths of openclaw.json that are set: every tool in a container
// without a network, made from the image that was built.
var openClawSettings = []struct {
	path  []string
	value any
}{
	{[]string{"mode"}, "all"},
	{[]string{"scope"}, "session"},
	{[]string{"docker", "image"}, sandboxImage},
	{[]string{"docker", "network"}, "none"},
}

// MergeOpenClaw returns an openclaw.json with the settings of sandboxes in it. Comments
// and everything else stay as they are.
func MergeOpenClaw(old []byte) ([]byte, error) {
	text := old
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{\n}\n")
	}
	var err error
	for _, s := range openClawSettings {
		if text, err = edit.Set(text, append([]string{"agents", "defaults", "sandbox"}, s.path...), s.value); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// openClawConfig is the change of openclaw.json.
func openClawConfig() *Edit {
	return &Edit{Path: OpenClawFile, Begin: profile.ConfigPoint + "/openclaw.json", Owner: gatewayUser + ":" + gatewayUser, To: MergeOpenClaw}
}
