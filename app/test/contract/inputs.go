package contract

import (
	"cmp"
	"slices"
)

// Input is a parameter of an operation or a member of its request body.
type Input struct {
	In, Name string // In is "path", "query", "header" or "body"
	Required bool
}

// Inputs lists everything that a client can send with an operation: its parameters and
// the members of its JSON body, sorted. Member b of member a is named "a.b".
func (s *Spec) Inputs(op Operation) []Input {
	found := map[Input]bool{}
	for _, list := range [][]string{{"paths", op.Path}, op.at()} {
		parameters, _ := s.at(append(list, "parameters")...).([]any)
		for _, p := range parameters {
			p := s.resolve(p)
			in, _ := p["in"].(string)
			name, _ := p["name"].(string)
			required, _ := p["required"].(bool)
			found[Input{in, name, required}] = true
		}
	}
	body := s.resolve(s.at(op.at("requestBody")...))
	content, _ := body["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	s.members("", media["schema"], found)

	all := make([]Input, 0, len(found))
	for in := range found {
		if !in.Required && found[Input{in.In, in.Name, true}] {
			continue // also listed as required
		}
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b Input) int { return cmp.Or(cmp.Compare(a.In, b.In), cmp.Compare(a.Name, b.Name)) })
	return all
}

// members adds the members of a body's schema, including those of nested schemas.
func (s *Spec) members(above string, schema any, found map[Input]bool) {
	object := s.resolve(schema)
	required, _ := object["required"].([]any)
	properties, _ := object["properties"].(map[string]any)
	for name, member := range properties {
		found[Input{"body", above + name, slices.Contains(required, any(name))}] = true
		s.members(above+name+".", member, found)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		parts, _ := object[word].([]any)
		for _, part := range parts {
			s.members(above, part, found)
		}
	}
	if items, ok := object["items"]; ok {
		s.members(above, items, found)
	}
}

// resolve follows references until it reaches an object.
func (s *Spec) resolve(value any) map[string]any {
	object, _ := value.(map[string]any)
	for object["$ref"] != nil {
		object, _ = s.at(s.target(object)...).(map[string]any)
	}
	return object
}
