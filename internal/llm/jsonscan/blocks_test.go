package jsonscan

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// alphabet holds what strings are made of that scanning must tell apart, with
// backslashes often.
const alphabet = "\\\\\\\\\\\"/bfnrtuaz09 \x00\x1f\x20\x7f\x80\xff"

func TestEveryByteIsSeenAtEveryPlace(t *testing.T) {
	for c := range 256 {
		for at := range 2 * blockSize {
			in := []byte(strings.Repeat("x", 4*blockSize))
			in[at] = byte(c)
			checkSkip(t, in)
			in[at+1], in[at] = byte(c), '\\'
			checkSkip(t, in)
		}
	}
}

// skipSlowly is what skipBlocks may read past, byte by byte.
func skipSlowly(in []byte, pos int) int {
	for pos < len(in) {
		switch c := in[pos]; {
		case c == '\\' && pos+1 < len(in) && simple[in[pos+1]]:
			pos += 2
		case c == '\\' || c == '"' || c < 0x20 || c >= 0x80:
			return pos
		default:
			pos++
		}
	}
	return pos
}

func checkSkip(t *testing.T, in []byte) {
	t.Helper()
	if !canPass {
		t.Skip("this processor cannot, and pass is not called")
	}
	want, got := skipSlowly(in, 0), skipBlocks(in, 0)
	if got == want || len(in)-got <= blockSize && got <= want && skipSlowly(in, got) == want {
		return
	}
	t.Fatalf("%q: stopped at %d, not at %d", in, got, want)
}

func TestBlocksStopWhereBytesDo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		in := []byte(strings.Repeat("x", 300))
		for range random.IntN(200) {
			in[random.IntN(len(in))] = alphabet[random.IntN(len(alphabet)-6)] // seldom what stops everything
		}
		if random.IntN(2) == 0 {
			in[random.IntN(len(in))] = alphabet[random.IntN(len(alphabet))]
		}
		checkSkip(t, in)
	}
	for length := range 10 { // over the border of what is passed in one go
		long := strings.Repeat("x", blockSize*maxBlocks-5) + strings.Repeat(`\`, length)
		checkSkip(t, []byte(long+`"`))
		checkSkip(t, []byte(long+strings.Repeat("nnnn", 100)+`"`+strings.Repeat("y", 200)))
	}
	for length := range 200 { // rows of backslashes over the borders of blocks
		for _, after := range []string{`"`, "n", "u", "\n", "ü"} {
			checkSkip(t, []byte(strings.Repeat("x", 30)+strings.Repeat(`\`, length)+after+strings.Repeat("y", 200)))
		}
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add([]byte(strings.Repeat(`a\\`, 50) + `"` + strings.Repeat("b", 64)))
	f.Fuzz(checkSkip)
}
