package secret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// ErrAbsent means that a source has no value: a variable that is not set, a file that
// does not exist, a keyring without the entry. Everything else that keeps a source from
// being read is another error.
var ErrAbsent = errors.New("no value")

// absentError is ErrAbsent in the words of its source.
type absentError string

func absent(name, how string) error { return absentError(name + " " + how) }

func (e absentError) Error() string        { return string(e) }
func (e absentError) Is(target error) bool { return target == ErrAbsent }

// First returns the value of the first source that has one, and that source. Values are
// never put together from several. A source that is there and cannot be read is an
// error, and the sources after it are not used: which value counts must not depend on a
// broken one.
func First(ctx context.Context, sources ...Source) (Value, Source, error) {
	var tried []string
	for _, source := range sources {
		value, err := source.Read(ctx)
		switch {
		case err == nil:
			return value, source, nil
		case !errors.Is(err, ErrAbsent) && !errors.Is(err, fs.ErrNotExist):
			return Value{}, source, err
		}
		tried = append(tried, source.Name())
	}
	return Value{}, nil, fmt.Errorf("%w in %s", ErrAbsent, strings.Join(tried, ", "))
}
