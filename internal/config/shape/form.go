package shape

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// FormFor returns the shape among s's forms that a value of this kind has, or nil.
func (s *Shape) FormFor(kind jsontext.Kind) *Shape {
	if s.Kind == KindChoice {
		for _, choice := range s.Choices {
			if form := choice.FormFor(kind); form != nil {
				return form
			}
		}
		return nil
	}
	var fits bool
	switch s.Kind {
	case KindAnything:
		fits = true
	case KindObject, KindRecord:
		fits = kind == '{'
	case KindList:
		fits = kind == '['
	case KindText:
		fits = kind == '"'
	case KindNumber, KindInteger:
		fits = kind == '0'
	case KindBoolean:
		fits = kind == 't' || kind == 'f'
	}
	if !fits {
		return nil
	}
	return s
}

// Name says what s wants, for "expected …".
func (s *Shape) Name() string {
	switch s.Kind {
	case KindObject, KindRecord:
		return "an object"
	case KindList:
		return "a list"
	case KindText:
		return "a string"
	case KindNumber:
		return "a number"
	case KindInteger:
		return "a whole number"
	case KindBoolean:
		return "true or false"
	case KindChoice:
		names := make([]string, len(s.Choices))
		for i, choice := range s.Choices {
			names[i] = choice.Name()
		}
		return strings.Join(names, " or ")
	}
	return "a value"
}
