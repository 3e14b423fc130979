package seccomp

// refusals are the calls that no rule may allow, whatever a later release of
// moby's profile says, each with the reason. Most are not in that profile for a
// process without capabilities today; naming them keeps it so.
var refusals = map[string]string{
	"ptrace":            "controls another process",
	"process_vm_readv":  "reads another process's memory",
	"process_vm_writev": "writes another process's memory",
	"process_madvise":   "acts on another process's memory",
	"pidfd_getfd":       "takes another process's descriptors",
	"kcmp":              "tells kernel pointers of other processes apart",

	"io_uring_setup":    "makes calls that no filter sees",
	"io_uring_enter":    "makes calls that no filter sees",
	"io_uring_register": "makes calls that no filter sees",

	"add_key":     "keyrings are not divided between sandboxes",
	"request_key": "keyrings are not divided between sandboxes",
	"keyctl":      "keyrings are not divided between sandboxes",

	"unshare": "new namespaces open kernel code that needs privileges otherwise",
	"setns":   "enters other namespaces",

	"bpf":             "loads programs into the kernel",
	"perf_event_open": "observes the kernel and other processes",
	"userfaultfd":     "holds the kernel at a chosen moment, as exploits do",
	"lookup_dcookie":  "profiling of the whole machine",
	"fanotify_init":   "observes files of the whole machine",

	"open_by_handle_at": "opens files outside every mount (the way out of early containers)",
	"name_to_handle_at": "gives the handles for that, and has no use without",

	"mount": "changes mounts", "umount": "changes mounts", "umount2": "changes mounts",
	"mount_setattr": "changes mounts", "move_mount": "changes mounts", "open_tree": "changes mounts",
	"fsopen": "changes mounts", "fsconfig": "changes mounts", "fsmount": "changes mounts",
	"fspick": "changes mounts", "pivot_root": "changes mounts", "chroot": "changes the root",

	"init_module": "loads kernel code", "finit_module": "loads kernel code", "delete_module": "unloads kernel code",
	"kexec_load": "replaces the kernel", "kexec_file_load": "replaces the kernel", "reboot": "stops the machine",
	"iopl": "raw hardware access", "ioperm": "raw hardware access",
	"swapon": "belongs to the machine", "swapoff": "belongs to the machine", "acct": "belongs to the machine",
	"quotactl": "belongs to the machine", "quotactl_fd": "belongs to the machine",
	"syslog": "reads the kernel's log", "vhangup": "acts on the terminal's other users",
	"settimeofday": "sets the clock", "stime": "sets the clock",
	"clock_settime": "sets the clock", "clock_settime64": "sets the clock",
	"sethostname": "belongs to the sandbox's maker", "setdomainname": "belongs to the sandbox's maker",

	"modify_ldt": "only 16- and 32-bit code needs it, which the filter refuses",
	"vm86":       "16-bit code", "vm86old": "16-bit code",
}
