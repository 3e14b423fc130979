package kube

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/atoll-run/atoll/internal/config/amount"
	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// guestSize bounds the volume with the guest, which has some 5 MB.
	guestSize = "32Mi"
	// programSize bounds the volume with the program of a run.
	programSize = "512Mi"
	// wireSize bounds the volume with the guest's socket.
	wireSize = "1Mi"
	// tmpfsShare is the part of the memory limit that temporary file systems without a
	// size may hold together, in percent: no killed process gives that memory back.
	tmpfsShare = 75
)

// volumesOf are the volumes of a pod and where its container sees them.
func volumesOf(spec *sandbox.Spec, s *kubekeys.Settings) (volumes []corev1.Volume, mounts []corev1.VolumeMount, err error) {
	add := func(name, target string, readOnly bool, source *corev1.EmptyDirVolumeSource) {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: source}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: target, ReadOnly: readOnly})
	}
	add(installName, guestHome, true, onDisk(resource.MustParse(guestSize)))
	add("wire", wireTarget, false, inMemory(new(resource.MustParse(wireSize))))
	room, err := resource.ParseQuantity(s.WorkspaceSize)
	if err != nil {
		return nil, nil, fmt.Errorf("kubernetes.workspaceSize %q: %w", s.WorkspaceSize, err)
	}
	for i, m := range spec.Mounts {
		if isProgram(&m) {
			add("copy-"+strconv.Itoa(i), path.Dir(m.Target), false, onDisk(resource.MustParse(programSize)))
			continue
		}
		if onVolume(spec, &m, s) {
			volumes = append(volumes, claimVolume())
			mounts = append(mounts, corev1.VolumeMount{Name: volumeName, MountPath: m.Target})
			continue
		}
		add("copy-"+strconv.Itoa(i), m.Target, false, onDisk(room))
	}
	for i, t := range spec.Tmpfs {
		size, err := tmpfsSize(spec, t)
		if err != nil {
			return nil, nil, err
		}
		add("tmp-"+strconv.Itoa(i), t.Target, false, inMemory(size))
	}
	if spec.ShmSize > 0 && spec.ShmSize != sandbox.DefaultShmSize {
		add("shm", "/dev/shm", false, inMemory(resource.NewQuantity(spec.ShmSize, resource.BinarySI)))
	}
	return volumes, mounts, nil
}

func onDisk(size resource.Quantity) *corev1.EmptyDirVolumeSource {
	return &corev1.EmptyDirVolumeSource{SizeLimit: &size}
}

func inMemory(size *resource.Quantity) *corev1.EmptyDirVolumeSource {
	return &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: size}
}

// tmpfsSize is what a temporary file system may hold: what it says, or a share of the
// memory.
func tmpfsSize(spec *sandbox.Spec, t sandbox.Tmpfs) (*resource.Quantity, error) {
	for option := range strings.SplitSeq(t.Options, ",") {
		if text, ok := strings.CutPrefix(option, "size="); ok {
			size, err := amount.Size{Text: text}.Bytes()
			if err != nil {
				return nil, fmt.Errorf("tmpfs %s: %w", t.Target, err)
			}
			return resource.NewQuantity(size, resource.BinarySI), nil
		}
	}
	memory := spec.Limits.WithDefaults(sandbox.Defaults{Memory: kubekeys.DefaultMemory}).Memory
	return resource.NewQuantity(memory/100*tmpfsShare/int64(len(spec.Tmpfs)), resource.BinarySI), nil
}
