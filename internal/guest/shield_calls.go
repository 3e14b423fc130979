package guest

import "golang.org/x/sys/unix"

// shieldedArch is the calls of one kind of program that the shield judges.
type shieldedArch struct {
	audit uint32
	calls []shieldedCall
}

// shieldedCall is a system call and its rule.
type shieldedCall struct {
	nr   uint32
	rule rule
}

// x32 is the bit that the numbers of x32 programs have on amd64.
const x32 = 0x40000000

// shielded are the calls of every kind of program that may run on an
// architecture, the 32-bit ones too: the runtime's profile may be another than
// ours, which ends those.
var shielded = map[string][]shieldedArch{
	"amd64": {
		{unix.AUDIT_ARCH_X86_64, append(amd64Calls(0), amd64Calls(x32)...)},
		{unix.AUDIT_ARCH_I386, []shieldedCall{
			{340, ownLimits}, {154, ownProcess}, {156, ownProcess}, {241, ownProcess}, {351, ownProcess},
			{97, ownPriority}, {289, ownIO}, {324, notSupported}}},
	},
	"arm64": {
		{unix.AUDIT_ARCH_AARCH64, []shieldedCall{
			{261, ownLimits}, {118, ownProcess}, {119, ownProcess}, {122, ownProcess}, {274, ownProcess},
			{140, ownPriority}, {30, ownIO}, {47, notSupported}}},
		{unix.AUDIT_ARCH_ARM, []shieldedCall{
			{369, ownLimits}, {154, ownProcess}, {156, ownProcess}, {241, ownProcess}, {380, ownProcess},
			{97, ownPriority}, {314, ownIO}, {352, notSupported}}},
	},
}

// amd64Calls are prlimit64, sched_setparam, sched_setscheduler,
// sched_setaffinity, sched_setattr, setpriority, ioprio_set and fallocate, in
// the order of the other tables too.
func amd64Calls(bit uint32) []shieldedCall {
	return []shieldedCall{
		{302 | bit, ownLimits}, {142 | bit, ownProcess}, {144 | bit, ownProcess}, {203 | bit, ownProcess}, {314 | bit, ownProcess},
		{141 | bit, ownPriority}, {251 | bit, ownIO}, {285 | bit, notSupported}}
}
