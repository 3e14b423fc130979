package readable_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/tool/readable"
)

var base = &url.URL{Scheme: "https", Host: "example.org", Path: "/docs/index.html"}

func TestExtract(t *testing.T) {
	cases := []struct{ name, page, want string }{
		{"running text", "<p>one\n  two   <b>three</b></p><p>four</p>", "one two three\n\nfour"},
		{"no blanks are made up", "<p>a<b>b</b>c <i>d</i>, e</p>", "abc d, e"},
		{"headings", "<h1>Top</h1>text<h3>Sub</h3>more", "# Top\n\ntext\n\n### Sub\n\nmore"},
		{"lists", "<ul><li>one<li>two<ul><li>deep</ul></ul>after", "- one\n- two\n  - deep\n\nafter"},
		{"links", `see <a href="../a?b=1">the page</a>, <a href="#x">here</a> and <a href="javascript:alert(1)">this</a>`, "see [the page](https://example.org/a?b=1), here and this"},
		{"open links end", `<a href="/1">one<a href="/2">two</a> three`, "[one](https://example.org/1)[two](https://example.org/2) three"},
		{"pictures", `<img src="x.png" alt="a  cat">`, "[image: a cat]"},
		{"verbatim", "<pre>if x {\n\ty()\n}</pre>after", "if x {\n\ty()\n}\n\nafter"},
		{"tables", "<table><tr><th>a<th>b<tr><td>1<td>2</table>", "a | b\n1 | 2"},
		{"entities", "<p>&lt;b&gt; &amp; caf&eacute; &#8364;", "<b> & café €"},
		{"programs and looks", "a<script>alert('<p>x')</script><style>p{}</style><template>t</template><svg><text>s</text></svg>b", "ab"},
		{"navigation", "<nav><a href=/>home</a></nav><p>body<footer>(c)</footer>", "body"},
		{"nested skipped", "<nav><nav>a</nav>b</nav>c", "c"},
		{"unclosed skipped", "a<script>b", "a"},
		{"comments", "a<!-- b -->c", "ac"},
		{"control characters", "a\x1b[31mb\x00c\u0085d", "a[31mbcd"},
		{"no tags", "just text", "just text"},
		{"empty", "", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			page, err := readable.Extract(strings.NewReader(c.page), base)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, page.Text); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	page, err := readable.Extract(strings.NewReader("<head><title> A\n page </title></head><p>x"), nil)
	if err != nil || page.Title != "A page" || page.Text != "x" {
		t.Errorf("got %+v, %v", page, err)
	}
	long, _ := readable.Extract(strings.NewReader("<title>"+strings.Repeat("ä", 10_000)), nil)
	if len(long.Title) > 300 || !utf8.ValidString(long.Title) {
		t.Errorf("title of %d bytes", len(long.Title))
	}
}

func TestMainPartStandsForThePage(t *testing.T) {
	text := strings.Repeat("what it is about ", 30)
	page, _ := readable.Extract(strings.NewReader("<div>menu</div><main><p>"+text+"</p></main><div>more menus</div>"), base)
	if page.Text != strings.TrimSpace(text) {
		t.Errorf("got %q", page.Text)
	}
	short, _ := readable.Extract(strings.NewReader("<div>menu</div><main>x</main>"), base)
	if short.Text != "menu\n\nx" {
		t.Errorf("got %q", short.Text)
	}
}

func FuzzExtract(f *testing.F) {
	for _, seed := range []string{
		"<p>a</p>", "<a href='x'>b", "<ul><li><ul><li>", "</li></ul></a></pre></main>", "<script>", "<pre>\n", "<td><td>", "<title><title>",
		strings.Repeat("<div>", 100), "<a\x00href=", "&#x110000;&notit;", "<main><article></main>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		page, err := readable.Extract(strings.NewReader(text), base)
		if err != nil {
			return
		}
		if !utf8.ValidString(page.Text) || !utf8.ValidString(page.Title) {
			t.Errorf("not UTF-8: %q", page)
		}
		// A page makes little more text than it has: marks of headings and
		// lists, and the addresses of links.
		if len(page.Text) > 40*len(text)+1000 {
			t.Errorf("%d bytes became %d", len(text), len(page.Text))
		}
		if strings.ContainsAny(page.Text, "\x00\x1b") {
			t.Errorf("control characters in %q", page.Text)
		}
	})
}

// TestDeepAndLargePages takes time and memory in proportion to the page.
func TestDeepAndLargePages(t *testing.T) {
	for _, piece := range []string{"<div>", "<ul><li>", "<a href=x>", "<table><tr><td>x", "<h1>", "<nav>", "<main>"} {
		page, err := readable.Extract(strings.NewReader(strings.Repeat(piece, (1<<20)/len(piece))), base)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Text) > 16<<20 {
			t.Errorf("%s makes %d bytes", piece, len(page.Text))
		}
	}
}
