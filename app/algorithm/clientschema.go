package algorithm

import (
	"encoding/json"
	"strings"

	"molrun/app/base/strictjson"
)

// settingsSchema returns the JSON Schema of all settings, for clients. A parameter's
// schema that refers to itself gets its own $id so that its references resolve.
func settingsSchema(parameters []Parameter) json.RawMessage {
	b := []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{`)
	var required []string
	for i := range parameters {
		if i > 0 {
			b = append(b, ',')
		}
		p := &parameters[i]
		b = append(strictjson.AppendQuoted(b, p.Name), ':')
		b = append(b, p.clientSchema()...)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	b = append(b, '}')
	for i, name := range required {
		b = append(b, []string{`,"required":[`, ","}[min(i, 1)]...)
		b = strictjson.AppendQuoted(b, name)
	}
	if len(required) > 0 {
		b = append(b, ']')
	}
	return append(b, `,"additionalProperties":false}`...)
}

// clientSchema returns the schema of one parameter, including its title and help.
func (p *Parameter) clientSchema() json.RawMessage {
	words, err := strictjson.Parse(p.Schema)
	if err != nil {
		panic(err) // already compiled
	}
	members := words.Members
	set := func(name, text string) {
		if text != "" && words.Member(name) == nil {
			members = append(members, strictjson.Member{Name: name, Value: &strictjson.Value{Kind: strictjson.String, Text: text}})
		}
	}
	if strings.Contains(string(p.Schema), `"$`) {
		set("$id", "urn:molrun:parameter:"+p.Name)
	}
	set("title", p.Title)
	help := p.Help
	switch {
	case p.Many:
		help += " Refers to files (" + strings.Join(p.File, ", ") + "): each is a fileId, folder/filename, or job:<jobName>/<path>."
	case len(p.File) > 0:
		help += " Refers to a file (" + strings.Join(p.File, ", ") + "): a fileId, folder/filename, or job:<jobName>/<path>."
	}
	set("description", strings.TrimSpace(help))
	if p.fallback != nil {
		members = append(members, strictjson.Member{Name: "default", Value: p.fallback})
	}
	return strictjson.AppendPlainMembers(nil, members)
}
