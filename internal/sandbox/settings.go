package sandbox

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// settingsFact is where the settings of a sandbox are kept.
func settingsFact(name string) string { return "settings:" + name }

// SetSettings keeps what a sandbox was made from. Delete removes it.
func (r *Registry) SetSettings(ctx context.Context, name string, settings map[string]string) error {
	if settings == nil {
		return nil
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	return r.SetFact(ctx, settingsFact(name), string(text))
}

// Settings returns what a sandbox was made from; nil if that is not known.
func (r *Registry) Settings(ctx context.Context, name string) (settings map[string]string, err error) {
	text, err := r.Fact(ctx, settingsFact(name))
	if err != nil || text == "" || json.Unmarshal([]byte(text), &settings) != nil {
		return nil, err
	}
	return settings, nil
}

// deleteWithSettings removes a row and its settings.
func deleteWithSettings(ctx context.Context, tx *sql.Tx, name string) error {
	if _, err := tx.ExecContext(ctx, "DELETE FROM sandboxes WHERE container_name = ?", name); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM facts WHERE name = ?", settingsFact(name))
	return err
}

// maxShown bounds how many changed settings a message names, and how long a value
// of one may be.
const (
	maxShown     = 4
	maxShownText = 60
)

// changes says which settings differ, with the old and the new value; "" if the
// old ones are not known.
func (m *Manager) changes(ctx context.Context, spec *Spec) string {
	old, err := m.Registry.Settings(ctx, spec.Name)
	if err != nil || old == nil || spec.Settings == nil {
		return ""
	}
	var list []string
	for key, now := range spec.Settings {
		if was, ok := old[key]; !ok {
			list = append(list, key+" is now "+shown(now))
		} else if was != now {
			list = append(list, fmt.Sprintf("%s was %s and is now %s", key, shown(was), shown(now)))
		}
	}
	for key, was := range old {
		if _, ok := spec.Settings[key]; !ok {
			list = append(list, fmt.Sprintf("%s was %s and is not set now", key, shown(was)))
		}
	}
	slices.Sort(list)
	if more := len(list) - maxShown; more > 0 {
		list = append(list[:maxShown], fmt.Sprintf("%d more", more))
	}
	return strings.Join(list, "; ")
}

func shown(text string) string {
	if len(text) > maxShownText {
		return strings.ToValidUTF8(text[:maxShownText], "") + "…"
	}
	return text
}
