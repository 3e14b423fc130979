package config

import (
	"errors"
	"fmt"
	"maps"
)

// overlay merges sandbox.overlay.*.
func (m *merge) overlay(agent, global *overlayFile) (Overlay, error) {
	const at = "sandbox.overlay."
	o := builtinOverlay()
	o.Kind = pick(m, at+"kind", agent.Kind, global.Kind, o.Kind)
	o.Empty = pickList(m, at+"empty", agent.Empty, global.Empty, nil)
	own, shared := orEmpty(agent.CopyLimit), orEmpty(global.CopyLimit)
	o.CopyLimit.Files = pick(m, at+"copyLimit.files", own.Files, shared.Files, o.CopyLimit.Files)
	if err := m.bytes(at+"copyLimit.size", own.Size, shared.Size, &o.CopyLimit.Size); err != nil {
		return o, err
	}
	for _, tree := range pickList(m, at+"more", agent.More, global.More, nil) {
		source, err := m.cfg.hostPath(*tree.Source)
		if err != nil {
			return o, err
		}
		o.More = append(o.More, OverlayTree{Source: source, Target: *tree.Target})
	}
	return o, nil
}

// bytes merges a size. What to points to is the default.
func (m *merge) bytes(key string, agent, global *Size, to *int64) error {
	written := pick(m, key, agent, global, Size{})
	if written == (Size{}) {
		return nil
	}
	size, err := written.Bytes()
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	*to = size
	return nil
}

// sync merges sandbox.sync.*.
func (m *merge) sync(agent, global *syncFile) (Sync, error) {
	const at = "sandbox.sync."
	s := builtinSync()
	s.Mode = pick(m, at+"mode", agent.Mode, global.Mode, s.Mode)
	s.Interval = pick(m, at+"interval", agent.Interval, global.Interval, s.Interval)
	s.Ignore = pickList(m, at+"ignore", agent.Ignore, global.Ignore, nil)
	s.Protect = joinMaps(m, at+"protect", agent.Protect, global.Protect, nil)
	own, shared := orEmpty(agent.Limits), orEmpty(global.Limits)
	s.Limits.Files = pick(m, at+"limits.files", own.Files, shared.Files, s.Limits.Files)
	err := errors.Join(
		m.bytes(at+"limits.fileBytes", own.FileBytes, shared.FileBytes, &s.Limits.FileBytes),
		m.bytes(at+"limits.totalBytes", own.TotalBytes, shared.TotalBytes, &s.Limits.TotalBytes),
	)
	return s, err
}

// narrow lowers what may be copied.
func (o *Overlay) narrow(f *overlayFile) {
	limit := orEmpty(f.CopyLimit)
	lower(&o.CopyLimit.Files, limit.Files)
	lowerBytes(&o.CopyLimit.Size, limit.Size)
}

// narrow makes a person approve changes, blocks more paths and lowers limits.
func (s *Sync) narrow(f *syncFile) {
	if f.Mode != nil {
		s.Mode = *f.Mode
	}
	if len(f.Protect) > 0 {
		s.Protect = maps.Clone(s.Protect)
		if s.Protect == nil {
			s.Protect = map[string]string{}
		}
		maps.Copy(s.Protect, f.Protect)
	}
	limits := orEmpty(f.Limits)
	lower(&s.Limits.Files, limits.Files)
	lowerBytes(&s.Limits.FileBytes, limits.FileBytes)
	lowerBytes(&s.Limits.TotalBytes, limits.TotalBytes)
}
