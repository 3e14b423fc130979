// Package readable turns a web page into text that a model can read: what the
// page says, its headings, lists, links and tables, and nothing of its looks.
// Where a page marks its main part, only that is kept.
//
// It reads the page token by token in one pass, so that no page makes it slow,
// deep or large. Getting pages is package fetch's.
package readable

import (
	"errors"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	// mainEnough is how long the marked main part must be to stand for the page.
	mainEnough = 200
	// maxLink bounds the addresses of links that are shown.
	maxLink = 400
	// maxTitle bounds the title.
	maxTitle = 300
)

// Page is what a web page says.
type Page struct {
	Title string
	Text  string
}

// Extract reads a page whose address is base, which relative links start from;
// nil if that is not known.
func Extract(page io.Reader, base *url.URL) (Page, error) {
	r := &reader{tokens: html.NewTokenizer(page), base: base}
	for {
		kind := r.tokens.Next()
		if kind == html.ErrorToken {
			if err := r.tokens.Err(); !errors.Is(err, io.EOF) {
				return Page{}, err
			}
			return r.page(), nil
		}
		r.token(kind)
	}
}

// reader is one pass over a page.
type reader struct {
	tokens *html.Tokenizer
	base   *url.URL

	all, main writer
	title     strings.Builder
	skipping  atom.Atom // element whose content is left out
	depth     int       // of elements of that name within it
	inMain    int
	inTitle   bool
	inPre     int
	links     []string // addresses of the links that are open
}

func (r *reader) page() Page {
	text := r.all.String()
	if main := r.main.String(); len(main) >= mainEnough {
		text = main
	}
	title := strings.Join(strings.Fields(r.title.String()), " ")
	return Page{Title: strings.ToValidUTF8(title[:min(len(title), maxTitle)], ""), Text: text}
}

// skipped are elements whose content is not read: programs, looks, navigation.
func skipped(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Canvas, atom.Audio, atom.Video,
		atom.Select, atom.Button, atom.Nav, atom.Footer, atom.Aside, atom.Dialog, atom.Math:
		return true
	}
	return false
}

func (r *reader) token(kind html.TokenType) {
	switch kind {
	case html.TextToken:
		r.text(string(r.tokens.Text()))
	case html.StartTagToken, html.SelfClosingTagToken:
		name, more := r.tokens.TagName()
		r.open(atom.Lookup(name), more, kind == html.SelfClosingTagToken)
	case html.EndTagToken:
		name, _ := r.tokens.TagName()
		r.close(atom.Lookup(name))
	}
}

func (r *reader) text(text string) {
	switch {
	case r.inTitle && r.title.Len() < 2*maxTitle:
		r.title.WriteString(text)
	case r.skipping == 0 && !r.inTitle:
		r.each(func(w *writer) { w.text(text, r.inPre > 0) })
	}
}

// each writes to the whole page and, inside it, to its main part.
func (r *reader) each(write func(*writer)) {
	write(&r.all)
	if r.inMain > 0 {
		write(&r.main)
	}
}

func (r *reader) open(a atom.Atom, attributes, closed bool) {
	if r.skipping != 0 {
		if a == r.skipping && !closed {
			r.depth++
		}
		return
	}
	if skipped(a) {
		if !closed {
			r.skipping, r.depth = a, 1
		}
		return
	}
	switch a {
	case atom.Title:
		r.inTitle = !closed
	case atom.Main, atom.Article:
		r.inMain++
	case atom.Pre:
		r.inPre++
	case atom.A:
		r.openLink(attributes)
	case atom.Img:
		r.image(attributes)
	}
	r.each(func(w *writer) { w.open(a) })
}

func (r *reader) close(a atom.Atom) {
	if r.skipping != 0 {
		if a == r.skipping {
			if r.depth--; r.depth == 0 {
				r.skipping = 0
			}
		}
		return
	}
	switch a {
	case atom.Title:
		r.inTitle = false
	case atom.Pre:
		r.inPre = max(r.inPre-1, 0)
	case atom.A:
		r.closeLink()
	}
	r.each(func(w *writer) { w.close(a) })
	if a == atom.Main || a == atom.Article {
		r.inMain = max(r.inMain-1, 0)
	}
}

// attribute finds one attribute of the tag just read.
func (r *reader) attribute(wanted string) string {
	for {
		name, value, more := r.tokens.TagAttr()
		if string(name) == wanted {
			return string(value)
		}
		if !more {
			return ""
		}
	}
}

func (r *reader) openLink(attributes bool) {
	r.closeLink() // links do not nest
	target := ""
	if attributes {
		target = r.resolve(r.attribute("href"))
	}
	r.links = append(r.links, target)
	if target != "" {
		r.each(func(w *writer) { w.inline("[") })
	}
}

func (r *reader) closeLink() {
	if len(r.links) == 0 {
		return
	}
	target := r.links[0]
	r.links = r.links[:0]
	if target != "" {
		r.each(func(w *writer) { w.glue("](" + target + ")") })
	}
}

// resolve makes a link whole, and drops those that lead nowhere else.
func (r *reader) resolve(href string) string {
	href = strings.TrimSpace(href)
	if href == "" || strings.HasPrefix(href, "#") || len(href) > maxLink {
		return ""
	}
	link, err := url.Parse(href)
	if err != nil {
		return ""
	}
	if r.base != nil {
		link = r.base.ResolveReference(link)
	}
	if link.Scheme != "http" && link.Scheme != "https" {
		return ""
	}
	return link.String()
}

func (r *reader) image(attributes bool) {
	if !attributes {
		return
	}
	if about := strings.Join(strings.Fields(r.attribute("alt")), " "); about != "" {
		r.each(func(w *writer) { w.inline("[image: " + about + "]") })
	}
}
