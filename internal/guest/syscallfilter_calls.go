package guest

import "golang.org/x/sys/unix"

// archCalls are the filtered calls of one architecture.
type archCalls struct {
	audit uint32
	calls []filteredCall
}

// filteredCall is a system call and its rule.
type filteredCall struct {
	nr   uint32
	rule filterRule
}

// x32 is the bit that the numbers of x32 programs have on amd64.
const x32 = 0x40000000

// filteredCalls are the calls of every architecture whose programs a machine may run, the
// 32-bit ones too: profiles other than Atoll's may allow those.
var filteredCalls = map[string][]archCalls{
	"amd64": {
		{unix.AUDIT_ARCH_X86_64, append(amd64Calls(0), amd64Calls(x32)...)},
		{unix.AUDIT_ARCH_I386, []filteredCall{
			{340, ownLimits}, {154, ownProcess}, {156, ownPolicy}, {241, ownProcess}, {351, ownProcess},
			{97, ownPriority}, {289, ownIO}, {324, notSupported}}},
	},
	"arm64": {
		{unix.AUDIT_ARCH_AARCH64, []filteredCall{
			{261, ownLimits}, {118, ownProcess}, {119, ownPolicy}, {122, ownProcess}, {274, ownProcess},
			{140, ownPriority}, {30, ownIO}, {47, notSupported}}},
		{unix.AUDIT_ARCH_ARM, []filteredCall{
			{369, ownLimits}, {154, ownProcess}, {156, ownPolicy}, {241, ownProcess}, {380, ownProcess},
			{97, ownPriority}, {314, ownIO}, {352, notSupported}}},
	},
}

// amd64Calls are prlimit64, sched_setparam, sched_setscheduler,
// sched_setaffinity, sched_setattr, setpriority, ioprio_set and fallocate, in
// the order of the other tables too.
func amd64Calls(bit uint32) []filteredCall {
	return []filteredCall{
		{302 | bit, ownLimits}, {142 | bit, ownProcess}, {144 | bit, ownPolicy}, {203 | bit, ownProcess}, {314 | bit, ownProcess},
		{141 | bit, ownPriority}, {251 | bit, ownIO}, {285 | bit, notSupported}}
}
