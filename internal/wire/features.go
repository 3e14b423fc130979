package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Feature names an ability of the protocol. Host and guest announce theirs in
// the hello and the welcome, so that a new ability needs no new version: a guest
// without it is refused for that ability only, and a name that the other side
// does not know is ignored.
type Feature string

// The features.
const (
	FeatureExec         Feature = "exec"          // commands and background processes
	FeatureFiles        Feature = "files"         // operations on files
	FeaturePorts        Feature = "ports"         // listening and dialling on loopback
	FeatureDirect       Feature = "direct"        // direct connections, for files
	FeatureDirectExec   Feature = "direct-exec"   // direct connections for commands, too
	FeatureFirstRequest Feature = "first-request" // direct connections without a parent, whose first request comes with the hello
	FeatureGrants       Feature = "grants"        // commands started under a grant, callers of ports named by theirs
	FeatureExecWhile    Feature = "exec-while"    // commands that start only while another runs
	FeatureSharedGrants Feature = "shared-grants" // several open grants, each with its own listener on a port
	FeatureFollow       Feature = "follow"        // background processes followed without loss
	FeatureFollowed     Feature = "followed"      // background processes that wait for their first follower
	FeatureEgress       Feature = "egress"        // listeners on addresses of names, datagrams, the execs of callers
	FeatureIdentity     Feature = "identity"      // a sandbox of a pool is told whose it is
	FeatureTreeLinks    Feature = "tree-links"    // symbolic links in trees of files
	FeatureTerminate    Feature = "terminate"     // files are served for a while after the sandbox was asked to end
)

// Limits on the features of one hello or welcome.
const (
	MaxFeatures    = 64
	MaxFeatureName = 32
)

// Features is a set of features.
type Features []Feature

// AllFeatures returns the features of this build.
func AllFeatures() Features {
	return append(versionFeatures(MaxVersion), FeatureFirstRequest, FeatureSharedGrants, FeatureEgress, FeatureFollow, FeatureFollowed, FeatureIdentity, FeatureTreeLinks, FeatureTerminate)
}

// versionFeatures returns what a peer of a version has that announces nothing:
// it was built before features had names.
func versionFeatures(version int) Features {
	features := Features{FeatureExec, FeatureFiles, FeaturePorts, FeatureDirect}
	if version >= 2 {
		features = append(features, FeatureDirectExec, FeatureGrants, FeatureExecWhile)
	}
	return features
}

// Has reports whether the set contains a feature.
func (f Features) Has(feature Feature) bool { return slices.Contains(f, feature) }

// Common returns the features that both sets contain.
func (f Features) Common(other Features) Features {
	var common Features
	for _, feature := range f {
		if other.Has(feature) && !common.Has(feature) {
			common = append(common, feature)
		}
	}
	return common
}

// Missing returns the features of needed that the set does not contain.
func (f Features) Missing(needed Features) Features {
	return slices.DeleteFunc(slices.Clone(needed), f.Has)
}

// check refuses more names than MaxFeatures, and names that are too long or
// hold anything but what an id may hold.
func (f Features) check() error {
	if len(f) > MaxFeatures {
		return fmt.Errorf("%w: %d features are over the limit of %d", ErrProtocol, len(f), MaxFeatures)
	}
	for _, feature := range f {
		if len(feature) > MaxFeatureName || !ValidID(string(feature)) {
			return fmt.Errorf("%w: malformed feature name", ErrProtocol)
		}
	}
	return nil
}

// need ties a part of a request to the feature that brought it.
type need struct {
	feature Feature
	part    string // "operation ping", or a field as in "exec.argv"
	used    func(*Request) bool
}

// additions are all parts that requests have gained since version 1. A guest
// ignores fields that it does not know, so every new part is listed here: a host
// then refuses to send it to a guest without the feature, instead of being
// misunderstood. Answers need no such list; a host sees what they lack.
func additions() []need {
	return []need{
		{FeatureGrants, "operation grant.open", func(r *Request) bool { return r.Op == OpGrantOpen }},
		{FeatureGrants, "operation grant.end", func(r *Request) bool { return r.Op == OpGrantEnd }},
		{FeatureDirectExec, "operation taken", func(r *Request) bool { return r.Op == OpAckLast }},
		{FeatureGrants, "grant", func(r *Request) bool { return r.Grant != nil }},
		{FeatureGrants, "grant.id", func(r *Request) bool { return r.Grant != nil && r.Grant.ID != "" }},
		{FeatureGrants, "grant.graceMs", func(r *Request) bool { return r.Grant != nil && r.Grant.GraceMs != 0 }},
		{FeatureGrants, "exec.grant", func(r *Request) bool { return r.Exec != nil && r.Exec.Grant != "" }},
		{FeatureExecWhile, "exec.while", func(r *Request) bool { return r.Exec != nil && r.Exec.While != "" }},
		{FeatureSharedGrants, "grant.shared", func(r *Request) bool { return r.Grant != nil && r.Grant.Shared }},
		{FeatureSharedGrants, "port.grant", func(r *Request) bool { return r.Port != nil && r.Port.Grant != "" }},
		{FeatureGrants, "port.who", func(r *Request) bool { return r.Port != nil && r.Port.WithGrant }},
		{FeatureFollowed, "exec.followed", func(r *Request) bool { return r.Exec != nil && r.Exec.Followed }},
		{FeatureFollow, "operation follow", func(r *Request) bool { return r.Op == OpFollow }},
		{FeatureEgress, "operation port.group", func(r *Request) bool { return r.Op == OpPortGroup }},
		{FeatureEgress, "operation port.add", func(r *Request) bool { return r.Op == OpPortAdd }},
		{FeatureEgress, "operation port.remove", func(r *Request) bool { return r.Op == OpPortRemove }},
		{FeatureEgress, "operation port.datagrams", func(r *Request) bool { return r.Op == OpPortDatagrams }},
		{FeatureEgress, "port.address", func(r *Request) bool { return r.Port != nil && r.Port.Address != "" }},
		{FeatureIdentity, "operation identify", func(r *Request) bool { return r.Op == OpIdentify }},
		{FeatureIdentity, "identity", func(r *Request) bool { return r.Identity != nil }},
		{FeatureIdentity, "identity.claim", func(r *Request) bool { return r.Identity != nil && r.Identity.Claim != "" }},
		{FeatureIdentity, "identity.name", func(r *Request) bool { return r.Identity != nil && r.Identity.Name != "" }},
		{FeatureTerminate, "operation terminate", func(r *Request) bool { return r.Op == OpTerminate }},
		{FeatureTerminate, "terminate", func(r *Request) bool { return r.Terminate != nil }},
		{FeatureTerminate, "terminate.waitMs", func(r *Request) bool { return r.Terminate != nil && r.Terminate.WaitMs != 0 }},
		{FeatureTerminate, "terminate.end", func(r *Request) bool { return r.Terminate != nil && r.Terminate.End }},
		{FeatureTreeLinks, "file.scan.links", func(r *Request) bool { return r.File != nil && r.File.Scan != nil && r.File.Scan.Links }},
	}
}

// operationFeature returns the feature of an operation of version 1; "" is one
// that every guest has.
func operationFeature(op Op) Feature {
	switch {
	case op == OpPing || op == OpInfo:
		return ""
	case op == OpIdentify:
		return FeatureIdentity
	case op == OpTerminate:
		return FeatureTerminate
	case op == OpFileDirect:
		return FeatureDirect
	case strings.HasPrefix(string(op), "file."):
		return FeatureFiles
	case strings.HasPrefix(string(op), "port."):
		return FeaturePorts
	case strings.HasPrefix(string(op), "grant."):
		return FeatureGrants
	}
	return FeatureExec
}

// Needs returns the features that a request uses.
func (r *Request) Needs() Features {
	var needs Features
	if feature := operationFeature(r.Op); feature != "" {
		needs = Features{feature}
	}
	for _, n := range additions() {
		if n.used(r) && !needs.Has(n.feature) {
			needs = append(needs, n.feature)
		}
	}
	return needs
}

// CheckFeatures returns nil if a guest with these features understands all of
// the request, else an *Error that names the feature and what needs it.
func CheckFeatures(have Features, req *Request) error {
	if feature := operationFeature(req.Op); feature != "" && !have.Has(feature) {
		return missing(feature, "operation "+string(req.Op))
	}
	for _, n := range additions() {
		if !have.Has(n.feature) && n.used(req) {
			return missing(n.feature, n.part)
		}
	}
	return nil
}

func missing(feature Feature, part string) error {
	return Fail(CodeNoFeature, fmt.Sprintf("%q needs the feature %q, which the guest of this sandbox does not have", part, feature))
}
