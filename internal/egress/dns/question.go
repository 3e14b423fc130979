package dns

import (
	"errors"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

// MaxMessage is the most bytes of a question.
const MaxMessage = 4096

// ErrIgnore is a message that gets no answer: it is not a question.
var ErrIgnore = errors.New("the message is not a question")

// Question is one question of a program.
type Question struct {
	Name     string // without the dot at its end, in the spelling of the program
	header   dnsmessage.Header
	question dnsmessage.Question
}

// Read reads a message. Errors other than ErrIgnore come with an answer, which
// says to the program what is wrong.
func Read(message []byte) (q *Question, answer []byte, err error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil || header.Response || len(message) > MaxMessage {
		return nil, nil, ErrIgnore
	}
	q = &Question{header: header}
	if header.OpCode != 0 {
		return nil, q.fail(dnsmessage.RCodeNotImplemented), errors.New("the operation is not a query")
	}
	if err := q.readOne(&p); err != nil {
		return nil, (&Question{header: header}).fail(dnsmessage.RCodeFormatError), err
	}
	return q, nil, nil
}

// readOne reads the question, which must be the only one.
func (q *Question) readOne(p *dnsmessage.Parser) (err error) {
	if q.question, err = p.Question(); err != nil {
		return err
	}
	if _, err := p.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		return errors.New("the message has more than one question")
	}
	q.Name = strings.TrimSuffix(q.question.Name.String(), ".")
	return nil
}

func (q *Question) is(kind dnsmessage.Type) bool {
	return q.question.Class == dnsmessage.ClassINET && q.question.Type == kind
}

// IsAddress reports whether an IPv4 address is asked for.
func (q *Question) IsAddress() bool { return q.is(dnsmessage.TypeA) }

// IsAddress6 reports whether an IPv6 address is asked for.
func (q *Question) IsAddress6() bool { return q.is(dnsmessage.TypeAAAA) }

// IsPointer reports whether the name of an address is asked for.
func (q *Question) IsPointer() bool { return q.is(dnsmessage.TypePTR) }
