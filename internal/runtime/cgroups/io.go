package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
)

// IO limits what is read from disks and written to them. The rates are of each
// disk.
type IO struct {
	Disks               []blockdev.Disk
	ReadBps, WriteBps   int64 // bytes a second
	ReadIOps, WriteIOps int64 // requests a second
	// Weight is a share beside those of others, from MinWeight to MaxWeight.
	Weight int64
}

// What a weight may be, as with every engine.
const (
	MinWeight = 10
	MaxWeight = 1000
)

func (l IO) none() bool { return l.Weight == 0 && !l.rated() }

func (l IO) rated() bool { return l.ReadBps > 0 || l.WriteBps > 0 || l.ReadIOps > 0 || l.WriteIOps > 0 }

// io is what to write for limits of disks.
func (h *Host) io(l IO) []setting {
	if l.none() {
		return nil
	}
	var list []setting
	for _, disk := range l.Disks {
		list = append(list, h.rates(disk, l)...)
	}
	if l.Weight > 0 {
		list = append(list, h.weight(l))
	}
	return list
}

// rates are those of one disk: version 1 has a file for each, version 2 one for
// all.
func (h *Host) rates(disk blockdev.Disk, l IO) []setting {
	var list []setting
	together := []string{disk.String()}
	for _, rate := range []struct {
		value        int64
		file, option string
	}{
		{l.ReadBps, "read_bps", "rbps"}, {l.WriteBps, "write_bps", "wbps"}, {l.ReadIOps, "read_iops", "riops"}, {l.WriteIOps, "write_iops", "wiops"},
	} {
		if rate.value > 0 {
			number := strconv.FormatInt(rate.value, 10)
			list = append(list, setting{Rate, "blkio", "blkio.throttle." + rate.file + "_device", disk.String() + " " + number})
			together = append(together, rate.option+"="+number)
		}
	}
	if len(list) > 0 && h.unified("io") {
		return []setting{{Rate, "io", "io.max", strings.Join(together, " ")}}
	}
	return list
}

// weight writes the share where the scheduler of the disks reads it.
func (h *Host) weight(l IO) setting {
	number := strconv.FormatInt(l.Weight, 10)
	switch {
	case !h.unified("io"):
		return setting{Weight, "blkio", "blkio.bfq.weight", number}
	case h.scheduled(l.Disks):
		return setting{Weight, "io", "io.bfq.weight", number}
	default: // version 2 counts from 1 to 10,000
		return setting{Weight, "io", "io.weight", strconv.FormatInt(1+(l.Weight-MinWeight)*9999/(MaxWeight-MinWeight), 10)}
	}
}

var errNoScheduler = errors.New("no scheduler gives shares of it")

// Weighs reports why a weight would change nothing on one of the disks.
func (h *Host) Weighs(disks []blockdev.Disk) error {
	if h.scheduled(disks) || h.unified("io") && h.costed(disks) {
		return nil
	}
	for _, disk := range disks {
		if scheduler := h.disks.Scheduler(disk); scheduler != fairScheduler {
			return errhint.With(fmt.Errorf("%s (%s): %w", disk.Path(), scheduler, errNoScheduler),
				fmt.Sprintf("echo bfq > /sys/block/%s/queue/scheduler, or remove the weight", strings.ReplaceAll(disk.Name, "/", "!")))
		}
	}
	return errNoScheduler
}

// fairScheduler is the scheduler that gives shares.
const fairScheduler = "bfq"

func (h *Host) scheduled(disks []blockdev.Disk) bool {
	for _, disk := range disks {
		if h.disks.Scheduler(disk) != fairScheduler {
			return false
		}
	}
	return len(disks) > 0
}

// costed reports whether version 2 reckons with costs on every disk.
func (h *Host) costed(disks []blockdev.Disk) bool {
	text, err := os.ReadFile(filepath.Join(h.controllers["io"].mount, "io.cost.qos"))
	for _, disk := range disks {
		if err != nil || !strings.Contains("\n"+string(text), "\n"+disk.String()+" enable=1") {
			return false
		}
	}
	return len(disks) > 0
}
