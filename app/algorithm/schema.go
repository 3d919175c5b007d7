package algorithm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"molrun/app/fault"
	"molrun/app/strictjson"
)

// schemaURL names a schema while it is compiled; nothing is loaded from it.
const schemaURL = "urn:molrun:parameter"

// nothingElse refuses to load a schema from anywhere.
type nothingElse struct{}

func (nothingElse) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not in this file", url)
}

// compileSchema makes a schema of draft 2020-12 ready for use. Faults have
// the path of the faulty word.
func compileSchema(text json.RawMessage) (compiled *jsonschema.Schema, doc any, faults []fault.Field) {
	v, err := strictjson.Parse(text)
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) {
			return nil, nil, e.Fields
		}
		return nil, nil, []fault.Field{{Msg: err.Error()}}
	}
	doc = v.Any()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nothingElse{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, nil, []fault.Field{{Msg: err.Error()}}
	}
	compiled, err = c.Compile(schemaURL)
	var invalid *jsonschema.SchemaValidationError
	var cause *jsonschema.ValidationError
	switch {
	case err == nil:
		return compiled, doc, nil
	case errors.As(err, &invalid) && errors.As(invalid.Err, &cause):
		return nil, nil, sentences(cause, v, "")
	}
	return nil, nil, []fault.Field{{Msg: "the schema cannot be used: " + strings.ReplaceAll(err.Error(), schemaURL, "")}}
}

// typesOf gives the types that a schema states.
func typesOf(words map[string]any) []string {
	switch t := words["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var types []string
		for _, item := range t {
			if s, ok := item.(string); ok {
				types = append(types, s)
			}
		}
		return types
	}
	return nil
}

// joinPath writes a path below settings as people do: sequences[3].name.
func joinPath(path []any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(step) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}

// settingsSchema gives the JSON Schema of all settings, for clients. A schema
// that refers to itself gets a base of its own, as its references need.
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

// clientSchema gives the schema of one parameter with what a form shows.
func (p *Parameter) clientSchema() json.RawMessage {
	words, err := strictjson.Parse(p.Schema)
	if err != nil {
		panic(err) // it was compiled
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
	set("description", p.Help)
	if len(p.File) > 0 {
		set("description", "Refers to a file ("+strings.Join(p.File, ", ")+"): a fileId, folder/filename, or job:<jobName>/<path>.")
	}
	if p.fallback != nil {
		members = append(members, strictjson.Member{Name: "default", Value: p.fallback})
	}
	return strictjson.AppendPlainMembers(nil, members)
}
