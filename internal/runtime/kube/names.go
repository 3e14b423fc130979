package kube

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// The labels and annotations of our objects. Labels are hashes: what they stand for may
// be longer than a label, and is in annotations.
const (
	labelInstallation = "atoll.dev/installation"
	labelSandbox      = "atoll.dev/sandbox"

	noteName     = "atoll.dev/name"
	noteLabels   = "atoll.dev/labels"   // those of package sandbox, as JSON
	notePhase    = "atoll.dev/phase"    // of a Lease
	notePod      = "atoll.dev/pod"      // name of the pod of a Lease
	noteTemplate = "atoll.dev/template" // the pod without its name, as JSON
	noteCause    = "atoll.dev/cause"    // why this installation has the cluster end the pod
	noteCopies   = "atoll.dev/copies"   // directories that are copied in and out, as JSON
	noteNonce    = "atoll.dev/nonce"
	noteImage    = "atoll.dev/image"
	noteSaved    = "atoll.dev/saved"  // when the copies were last brought home
	noteVolume   = "atoll.dev/volume" // of a Lease: whether its claim was filled
	noteSource   = "atoll.dev/source" // of a claim: the host directory whose copy it has
	noteEnded    = "atoll.dev/ended"  // why the cluster ended the pod, and what became of the copies
	noteClaim    = "atoll.dev/claim"  // SandboxClaim that the pod came by
	noteUID      = "atoll.dev/uid"    // of that pod
	noteMember   = "atoll.dev/member" // that pod, if it waited in a pool before
	noteTrial    = "atoll.dev/trial"  // of a pool: the sandbox that it was made for to try the cluster
	// noteContainer is the id of the pod's container, as the kubelet reported it.
	noteContainer = "atoll.dev/container"
)

// namePrefix begins the names of our objects.
const namePrefix = "atl-"

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// digest returns 20 letters and digits that stand for words.
func digest(words ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(words, "\x00")))
	return lowerBase32.EncodeToString(sum[:])[:20]
}

// leaseName is the name of the Lease of a sandbox.
func (r *Runtime) leaseName(name string) string { return namePrefix + digest(r.installation, name) }

// newPodName returns a name that no pod ever had.
func (r *Runtime) newPodName(name string) (pod, nonce string) {
	nonce = strings.ToLower(rand.Text())
	return namePrefix + digest(r.installation, name, nonce), nonce
}

// labels are those of every object of a sandbox.
func (r *Runtime) labels(name string) map[string]string {
	return map[string]string{labelInstallation: digest(r.installation), labelSandbox: digest(r.installation, name)}
}

// selectAll selects every object of this installation.
func (r *Runtime) selectAll() string { return labelInstallation + "=" + digest(r.installation) }

// selectOne selects the objects of one sandbox.
func (r *Runtime) selectOne(name string) string {
	return r.selectAll() + "," + labelSandbox + "=" + digest(r.installation, name)
}
