package dns_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/atoll-run/atoll/internal/egress/dns"
)

// ask packs a question.
func ask(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 77, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	return pack(t, m)
}

func pack(t testing.TB, m dnsmessage.Message) []byte {
	t.Helper()
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func unpack(t testing.TB, answer []byte) (m dnsmessage.Message) {
	t.Helper()
	if err := m.Unpack(answer); err != nil {
		t.Fatalf("the answer cannot be read: %v", err)
	}
	return m
}

func read(t *testing.T, message []byte) *dns.Question {
	t.Helper()
	q, _, err := dns.Read(message)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestAddress(t *testing.T) {
	q := read(t, ask(t, "ExAmPle.com.", dnsmessage.TypeA))
	if q.Name != "ExAmPle.com" || !q.IsAddress() || q.IsAddress6() || q.IsPointer() {
		t.Errorf("read %+v", q)
	}
	m := unpack(t, q.Address(netip.MustParseAddr("127.77.1.2")))
	if m.ID != 77 || !m.Response || !m.RecursionAvailable || !m.Authoritative || m.RCode != dnsmessage.RCodeSuccess {
		t.Errorf("header %+v", m.Header)
	}
	if len(m.Answers) != 1 || m.Answers[0].Body.(*dnsmessage.AResource).A != [4]byte{127, 77, 1, 2} || m.Answers[0].Header.TTL != dns.TTL {
		t.Errorf("answers %+v", m.Answers)
	}
	if m.Questions[0].Name.String() != "ExAmPle.com." {
		t.Errorf("the question came back as %s", m.Questions[0].Name)
	}
}

func TestPointer(t *testing.T) {
	q := read(t, ask(t, "2.1.77.127.in-addr.arpa.", dnsmessage.TypePTR))
	if a, ok := q.ReverseAddress(); !ok || a.String() != "127.77.1.2" {
		t.Errorf("%v, %v", a, ok)
	}
	if m := unpack(t, q.Pointer("example.com")); m.Answers[0].Body.(*dnsmessage.PTRResource).PTR.String() != "example.com." {
		t.Errorf("answers %+v", m.Answers)
	}
	for _, name := range []string{"1.77.127.in-addr.arpa.", "256.1.1.1.in-addr.arpa.", "example.com.", "a.b.c.d.in-addr.arpa."} {
		if a, ok := read(t, ask(t, name, dnsmessage.TypePTR)).ReverseAddress(); ok {
			t.Errorf("%s is %v", name, a)
		}
	}
}

func TestEmptyAnswers(t *testing.T) {
	q := read(t, ask(t, "example.com.", dnsmessage.TypeTXT))
	for want, answer := range map[dnsmessage.RCode][]byte{dnsmessage.RCodeSuccess: q.NoData(), dnsmessage.RCodeNameError: q.NotFound(), dnsmessage.RCodeServerFailure: q.Failure()} {
		if m := unpack(t, answer); m.RCode != want || len(m.Answers) != 0 || len(m.Questions) != 1 {
			t.Errorf("%v: %+v", want, m)
		}
	}
}

func TestWhatIsNoQuestion(t *testing.T) {
	question := dnsmessage.Question{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	for name, c := range map[string]struct {
		message []byte
		want    dnsmessage.RCode
	}{
		"none":    {pack(t, dnsmessage.Message{}), dnsmessage.RCodeFormatError},
		"two":     {pack(t, dnsmessage.Message{Questions: []dnsmessage.Question{question, question}}), dnsmessage.RCodeFormatError},
		"update":  {pack(t, dnsmessage.Message{Header: dnsmessage.Header{OpCode: 5}, Questions: []dnsmessage.Question{question}}), dnsmessage.RCodeNotImplemented},
		"cut off": {ask(t, "a.example.", dnsmessage.TypeA)[:16], dnsmessage.RCodeFormatError},
	} {
		_, answer, err := dns.Read(c.message)
		if err == nil || unpack(t, answer).RCode != c.want {
			t.Errorf("%s: %v, answer %x", name, err, answer)
		}
	}
	for name, message := range map[string][]byte{
		"an answer": pack(t, dnsmessage.Message{Header: dnsmessage.Header{Response: true}}), "nothing": {}, "too short": {1, 2, 3},
		"too long": append(ask(t, "a.example.", dnsmessage.TypeA), make([]byte, dns.MaxMessage)...),
	} {
		if _, answer, err := dns.Read(message); !errors.Is(err, dns.ErrIgnore) || answer != nil {
			t.Errorf("%s: %v, answer %x", name, err, answer)
		}
	}
}

func TestStream(t *testing.T) {
	var b bytes.Buffer
	for _, text := range []string{"one", "", strings.Repeat("x", dns.MaxMessage)} {
		if err := dns.WriteMessage(&b, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := dns.ReadMessage(&b); string(got) != text || err != nil {
			t.Errorf("%d bytes came back as %d, %v", len(text), len(got), err)
		}
	}
	for _, raw := range [][]byte{{}, {0}, {0, 5, 'a'}, {0xff, 0xff}} {
		if got, err := dns.ReadMessage(bytes.NewReader(raw)); err == nil {
			t.Errorf("%x was read as %q", raw, got)
		}
	}
}

// FuzzRead holds that every answer can be read, repeats the id, and has no record
// that was not asked for.
func FuzzRead(f *testing.F) {
	f.Add(ask(f, "example.com.", dnsmessage.TypeA))
	f.Add(ask(f, "2.1.77.127.in-addr.arpa.", dnsmessage.TypePTR))
	f.Add([]byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 12, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, message []byte) {
		q, answer, err := dns.Read(message)
		if err != nil {
			if answer != nil {
				unpack(t, answer)
			}
			return
		}
		q.ReverseAddress()
		for _, answer := range [][]byte{q.Address(netip.MustParseAddr("127.77.0.9")), q.NoData(), q.NotFound(), q.Pointer("example.com")} {
			if m := unpack(t, answer); len(m.Questions) != 1 || m.ID != uint16(message[0])<<8|uint16(message[1]) || !m.Response {
				t.Fatalf("answer %+v", m)
			}
		}
	})
}
