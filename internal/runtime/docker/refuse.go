package docker

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Package policy has checked a spec before, with better messages.
// These checks are the last line: whatever reaches an engine that runs as root
// must be what its words say, even if a caller was careless.

// objectName is what engines accept as the name of a container, network or
// volume. Nothing that matches it is a path or one of the special forms.
var objectName = lazyregexp.New(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`)

// specialNetworks mean something else than a network of that name, on one
// engine or the other, and all of them mean less isolation.
var specialNetworks = map[string]bool{
	"host": true, "default": true, "private": true, "pod": true, "ns": true, "slirp4netns": true, "pasta": true,
}

const containerNetwork = "container:"

// refuse lists everything in spec that must not reach an engine.
func refuse(spec *sandbox.Spec) error {
	var problems []error
	for _, check := range []func(*sandbox.Spec) error{
		checkName, checkNetwork, checkProfiles, checkEnv, checkSources, checkTargets, checkVolumes, checkAddresses, checkLimits,
	} {
		problems = append(problems, check(spec))
	}
	return errors.Join(problems...)
}

func denied(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, sandbox.ErrDenied)...)
}

func checkName(spec *sandbox.Spec) error {
	if len(spec.Name) > 63 || !objectName.MatchString(spec.Name) {
		return denied("container name %q", spec.Name)
	}
	if spec.Image == "" || strings.HasPrefix(spec.Image, "-") {
		return denied("image %q", spec.Image)
	}
	return nil
}

func checkNetwork(spec *sandbox.Spec) error {
	if peer, ok := strings.CutPrefix(spec.Network, containerNetwork); ok {
		if !objectName.MatchString(peer) {
			return denied("network %q", spec.Network)
		}
		return nil
	}
	if !objectName.MatchString(spec.Network) || specialNetworks[strings.ToLower(spec.Network)] {
		return denied("network %q", spec.Network)
	}
	return nil
}

func checkProfiles(spec *sandbox.Spec) error {
	for _, profile := range []string{spec.SeccompProfile, spec.AppArmorProfile} {
		if strings.EqualFold(strings.TrimSpace(profile), "unconfined") {
			return denied("security profile %q", profile)
		}
	}
	return nil
}

func checkEnv(spec *sandbox.Spec) error {
	for name, value := range spec.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return denied("environment variable %q", name)
		}
	}
	return nil
}

func checkSources(spec *sandbox.Spec) error {
	for _, m := range spec.Mounts {
		if !path.IsAbs(m.Source) || m.Overlay != nil && (!path.IsAbs(m.Overlay.Dir) || m.Overlay.Marks == "") {
			return denied("mount source %q", m.Source)
		}
	}
	return nil
}

// checkTargets refuses mounts over the guest's own paths.
func checkTargets(spec *sandbox.Spec) error {
	var problems []error
	for _, target := range targets(spec) {
		clean := path.Clean(target)
		if !path.IsAbs(target) || clean == "/" || clean == guestHome || strings.HasPrefix(clean, guestHome+"/") {
			problems = append(problems, denied("mount target %q", target))
		}
	}
	if spec.Workdir != "" && !path.IsAbs(spec.Workdir) {
		problems = append(problems, denied("workdir %q", spec.Workdir))
	}
	return errors.Join(problems...)
}

func targets(spec *sandbox.Spec) []string {
	var all []string
	for _, m := range spec.Mounts {
		all = append(all, m.Target)
	}
	for _, v := range spec.Volumes {
		all = append(all, v.Target)
	}
	for _, t := range spec.Tmpfs {
		all = append(all, t.Target)
	}
	return all
}

func checkVolumes(spec *sandbox.Spec) error {
	for _, v := range spec.Volumes {
		if !objectName.MatchString(v.Name) {
			return denied("volume %q", v.Name)
		}
	}
	return nil
}

func checkAddresses(spec *sandbox.Spec) error {
	for _, server := range spec.DNS {
		if _, err := netip.ParseAddr(server); err != nil {
			return denied("dns server %q is not an address", server)
		}
	}
	for _, host := range spec.ExtraHosts {
		if name, address, ok := strings.Cut(host, ":"); !ok || name == "" || address == "" {
			return denied("extra host %q is not name:address", host)
		}
	}
	return nil
}

func checkLimits(spec *sandbox.Spec) error {
	l := spec.Limits
	if l.Pids < 0 || l.Memory < 0 || l.MemorySwap < -1 || l.CPUs < 0 || !l.IO.Valid() || !l.Storage.Valid() {
		return denied("limits %+v", l)
	}
	for _, u := range l.Ulimits {
		if u.Name == "" || u.Hard != -1 && (u.Soft > u.Hard || u.Soft == -1) {
			return denied("ulimit %s=%d:%d", u.Name, u.Soft, u.Hard)
		}
	}
	return nil
}
