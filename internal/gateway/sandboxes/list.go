package sandboxes

import (
	"context"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Finder returns what says for whom a sandbox of agent api was made, with what it was
// made from, so that it is never made anew with other settings.
func Finder(in *provide.Installation) func(context.Context, *sandbox.Entry) (provide.Subject, error) {
	return func(ctx context.Context, entry *sandbox.Entry) (provide.Subject, error) {
		s := &Service{Options: Options{In: in}, records: records{in.DB}}
		r, err := s.records.get(ctx, entry.ContainerName)
		if err != nil {
			return provide.Subject{}, err
		}
		if r.Phase != Ready {
			return provide.Subject{}, ErrEnding
		}
		who := s.subjectOf(r)
		who.Exact = true
		return who, nil
	}
}

// Get returns the sandbox of an id, or of the name of a sandbox.
func (s *Service) Get(ctx context.Context, id string) (*Record, error) {
	return s.records.get(ctx, id)
}

// All returns the records of an account, "" for all, by the name of the sandbox.
func (s *Service) All(ctx context.Context, account string) (map[string]*Record, error) {
	list, err := s.records.ofAccount(ctx, account)
	if err != nil {
		return nil, err
	}
	all := make(map[string]*Record, len(list))
	for _, r := range list {
		all[r.Name] = r
	}
	return all, nil
}
