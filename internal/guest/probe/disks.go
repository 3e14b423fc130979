package probe

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// disks returns the limits of disks: control groups of version 1 have a file for each,
// version 2 has one for all.
func disks() findings.Disks {
	rate := func(name, option string) int64 {
		if value := lowestValue("/sys/fs/cgroup/blkio/blkio.throttle."+name+"_device", ""); value > 0 {
			return value
		}
		return lowestValue("/sys/fs/cgroup/io.max", option+"=")
	}
	d := findings.Disks{
		ReadBps: rate("read_bps", "rbps"), WriteBps: rate("write_bps", "wbps"),
		ReadIOps: rate("read_iops", "riops"), WriteIOps: rate("write_iops", "wiops"),
	}
	var st unix.Statfs_t
	if unix.Statfs("/", &st) == nil {
		d.Root, d.Inodes = int64(st.Blocks)*st.Bsize, int64(st.Files)
	}
	return d
}

// lowestValue returns the smallest number after a prefix in the lines of a file, whose
// first field is a disk; 0 if there is none.
func lowestValue(path, prefix string) (least int64) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		for _, field := range fields[min(1, len(fields)):] {
			number, ok := strings.CutPrefix(field, prefix)
			value, err := strconv.ParseInt(number, 10, 64)
			if ok && err == nil && (least == 0 || value < least) {
				least = value
			}
		}
	}
	return least
}
