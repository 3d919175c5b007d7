package algorithm

import (
	"slices"
	"strings"

	"molrun/app/algorithm/command"
	"molrun/app/base/strictjson"
	"molrun/app/base/tomltree"
)

// condition reads the "if" of a table, with what narrows it; nil if there is none, or
// none that makes sense.
func (c *commandReader) condition(t *tomltree.Node) *command.Condition {
	n := t.Member("if")
	if n == nil || !c.Is(n, "if", strictjson.String) {
		return nil
	}
	if n.Text == "gpus" {
		c.narrowed(t, "is", "gpus")
		c.narrowed(t, "ext", "gpus")
		return &command.Condition{Kind: "gpus"}
	}
	kind, name, ok := strings.Cut(n.Text, ".")
	p := c.parameters.Named(name)
	switch {
	case !ok || kind != "settings" && kind != "files":
		c.Mistakef(n.Line, `if must name a setting: "settings.NAME", got %q`, n.Text)
		return nil
	case p == nil:
		c.parameters.noteUnknown(c.Reader, n.Line, name)
		return nil
	case kind == "files" && len(p.File) == 0:
		c.Mistakef(n.Line, "the parameter %q is no file: write settings.%s", name, name)
		return nil
	}
	when := &command.Condition{Kind: kind, Name: name}
	if kind == "files" {
		c.narrowed(t, "is", "a file")
		when.Ext = c.extensions(t, p)
	} else {
		c.narrowed(t, "ext", "a setting that is no file")
		when.Is = c.values(t, p)
	}
	return when
}

// narrowed notes a key that does not go with what "if" names.
func (c *commandReader) narrowed(t *tomltree.Node, key, what string) {
	if n := t.Member(key); n != nil {
		c.Mistakef(n.Line, "%s says nothing about %s: remove it", key, what)
	}
}

// extensions reads ext: one extension, or some, all of them declared.
func (c *commandReader) extensions(t *tomltree.Node, p *Parameter) []string {
	n := t.Member("ext")
	if n == nil {
		return nil
	}
	if !slices.Contains(c.allowed, "work") {
		c.Mistakef(n.Line, "ext means nothing here: files have no extension yet")
	}
	if p.Many {
		c.Mistakef(n.Line, "ext says nothing about a list of files: remove it")
	}
	var all []string
	for _, item := range oneOrList(n) {
		switch {
		case !c.Is(item, "ext", strictjson.String):
		case p.Extension("x"+item.Text) != item.Text:
			c.Mistakef(item.Line, "the parameter %q takes no file whose name ends with %q: it takes %s", p.Name, item.Text, tomltree.OrList(p.File))
		}
		all = append(all, item.Text)
	}
	return all
}

// values reads is: one value, or some, all of them possible.
func (c *commandReader) values(t *tomltree.Node, p *Parameter) [][]byte {
	n := t.Member("is")
	if n == nil {
		return nil
	}
	all := [][]byte{}
	for _, item := range oneOrList(n) {
		v, err := strictjson.Parse(item.AppendJSON(nil))
		if err != nil {
			continue // the parser has noted it
		}
		if p.compiled != nil {
			for _, f := range p.compiled.Check(v, p.Unit) {
				c.Mistakef(item.Line, "the setting %q never is %s: it %s", p.Name, item.AppendJSON(nil), f.Msg)
			}
		}
		all = append(all, strictjson.AppendPlain(nil, v))
	}
	return all
}

func oneOrList(n *tomltree.Node) []*tomltree.Node {
	if n.Kind == strictjson.Array {
		return n.Items
	}
	return []*tomltree.Node{n}
}
