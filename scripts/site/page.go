package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A site is what Hugo wrote.
type site struct {
	pages map[string]*page // by path in the site, with slashes
	files map[string]bool  // all files, pages included
	texts map[string]string
}

// A page is an HTML file of the site.
type page struct {
	ids      map[string]bool
	links    []link
	sections []section
	lost     bool // has HTML that Hugo left out
}

// A link is an attribute with a URL.
type link struct {
	url    string
	loaded bool // by the browser, together with the page
}

// A section is a heading with the text below it.
type section struct {
	id, title, text string
}

// readSite reads the files in a directory.
func readSite(dir string) (*site, error) {
	s := &site{pages: map[string]*page{}, files: map[string]bool{}, texts: map[string]string{}}
	root := os.DirFS(dir)
	return s, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		s.files[path] = true
		file, err := root.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		switch filepath.Ext(path) {
		case ".html":
			s.pages[path], err = readPage(file)
		case ".css", ".js":
			var text []byte
			text, err = io.ReadAll(file)
			s.texts[path] = string(text)
		}
		return err
	})
}

func (s *site) links() int {
	n := 0
	for _, p := range s.pages {
		n += len(p.links)
	}
	return n
}

func readPage(r io.Reader) (*page, error) {
	root, err := html.Parse(r)
	if err != nil {
		return nil, err
	}
	p := &page{ids: map[string]bool{}}
	for node := range root.Descendants() {
		// A comment between blocks is not shown on GitHub either. In a line, it was a tag.
		if node.Type == html.CommentNode && strings.Contains(node.Data, "raw HTML omitted") && node.Parent.DataAtom != atom.Article {
			p.lost = true
		}
		for _, a := range node.Attr {
			switch a.Key {
			case "id":
				p.ids[a.Val] = true
			case "href":
				p.links = append(p.links, link{a.Val, node.DataAtom != atom.A})
			case "src", "srcset", "poster", "data", "action":
				p.links = append(p.links, link{a.Val, true})
			}
		}
		if node.DataAtom == atom.Article {
			p.sections = sections(node)
		}
	}
	return p, nil
}

// sections splits a page at its headings.
func sections(article *html.Node) []section {
	var all []section
	for block := range article.ChildNodes() {
		switch block.DataAtom {
		case atom.H1, atom.H2, atom.H3, atom.H4:
			all = append(all, section{id: attribute(block, "id"), title: textOf(block)})
		default:
			if len(all) > 0 {
				last := &all[len(all)-1]
				last.text = strings.TrimSpace(last.text + " " + textOf(block))
			}
		}
	}
	return all
}

func attribute(node *html.Node, key string) string {
	if i := slices.IndexFunc(node.Attr, func(a html.Attribute) bool { return a.Key == key }); i >= 0 {
		return node.Attr[i].Val
	}
	return ""
}

// textOf returns the text of a node in one line.
func textOf(node *html.Node) string {
	var b strings.Builder
	if node.Type == html.TextNode {
		b.WriteString(node.Data)
	}
	for n := range node.Descendants() {
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th || n.DataAtom == atom.Li:
			b.WriteByte(' ')
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
