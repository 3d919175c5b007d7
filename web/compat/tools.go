package compat

import (
	"encoding/json"
	"slices"
	"strings"

	"molrun/app/client"
)

// setting is a setting in the format of this mount's clients.
type setting struct {
	Name        string          `json:"name"`
	DisplayName string          `json:"displayName"`
	Type        string          `json:"type"`
	Required    bool            `json:"required"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default,omitempty"`
	Options     []any           `json:"options,omitempty"`
}

// settingsOf translates the parameters of an algorithm.
func settingsOf(a *client.Algorithm) []setting {
	all := make([]setting, len(a.Parameters))
	for i, p := range a.Parameters {
		all[i] = setting{p.Name, p.Title, kindOf(p), p.Required, p.Help, p.Default, optionsOf(p)}
	}
	return all
}

// optionsOf returns the allowed values of a setting, if they are enumerated.
func optionsOf(p client.Parameter) []any {
	schema, _ := p.Schema.(map[string]any) // the schema can be a boolean
	values, _ := schema["enum"].([]any)
	return values
}

func kindOf(p client.Parameter) string {
	kinds, several := p.Type.([]any)
	switch {
	case len(p.File) > 0:
		return "file"
	case several && len(kinds) > 0:
		text, _ := kinds[0].(string)
		return text
	}
	text, _ := p.Type.(string)
	return text
}

// readyAlgorithms returns the algorithms that can run here, without their settings.
func (c *call) readyAlgorithms() (ready []*client.Algorithm, err error) {
	a, err := c.api.Get(c.ctx(), nil, "algorithms")
	if err != nil {
		return nil, err
	}
	list, err := client.Decode[struct {
		Algorithms []*client.Algorithm `json:"algorithms"`
	}](a)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Algorithms, func(a *client.Algorithm) bool { return !a.Ready }), nil
}

func (c *call) findAlgorithm(name string) (*client.Algorithm, error) {
	a, err := c.api.Get(c.ctx(), nil, "algorithms", name)
	if err != nil {
		return nil, err
	}
	return client.Decode[client.Algorithm](a)
}

// tools handles GET tools with a list of all tools and their settings.
func (c *call) tools() (any, error) {
	ready, err := c.readyAlgorithms()
	if err != nil {
		return nil, err
	}
	list := []map[string]any{}
	for _, each := range ready {
		a, err := c.findAlgorithm(each.Type)
		if err != nil {
			return nil, err
		}
		paper := ""
		if len(a.Cite) > 0 {
			paper = "https://doi.org/" + a.Cite[0]
		}
		list = append(list, map[string]any{
			"name": a.Type, "displayName": a.Title, "description": a.Description, "github": "", "paper": paper, "settings": settingsOf(a),
		})
	}
	return list, nil
}

// jobTypes handles GET job-types.
func (c *call) jobTypes() (any, error) {
	ready, err := c.readyAlgorithms()
	names := []string{}
	for _, a := range ready {
		names = append(names, a.Type)
	}
	return map[string]any{"jobTypes": names}, err
}

// catalogSchema handles GET catalog/tools/{tool}/schema and GET tools/{tool}/schema.
func (c *call) catalogSchema() (any, error) {
	a, err := c.findAlgorithm(c.r.PathValue("tool"))
	if err != nil {
		return nil, err
	}
	example := a.Example
	if len(example) == 0 {
		example = json.RawMessage("{}")
	}
	return map[string]any{
		"name": a.Type, "displayName": a.Title, "description": a.Description, "categories": a.Categories,
		"parameters": settingsOf(a), "settings": settingsOf(a),
		"exampleJob": map[string]any{"jobName": a.Type + "-example", "type": a.Type, "settings": example},
	}, nil
}

// catalogTools handles GET catalog/tools, filtered by modality, function and text.
func (c *call) catalogTools() (any, error) {
	ready, err := c.readyAlgorithms()
	if err != nil {
		return nil, err
	}
	q := c.r.URL.Query()
	search := strings.ToLower(q.Get("search"))
	list := []map[string]any{}
	for _, a := range ready {
		text := strings.ToLower(a.Type + " " + a.Title + " " + a.Description)
		if !among(q.Get("modality"), a.Categories) || !among(q.Get("function"), a.Functions) || !strings.Contains(text, search) {
			continue
		}
		list = append(list, map[string]any{
			"name": a.Type, "displayName": a.Title, "description": a.Description, "categories": append(slices.Clone(a.Categories), a.Functions...),
		})
	}
	return map[string]any{"tools": list, "totalTools": len(list)}, nil
}

// among reports whether wanted is empty or in list, ignoring case.
func among(wanted string, list []string) bool {
	return wanted == "" || slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, wanted) })
}

// group is a category or function with the number of its algorithms.
type group struct {
	Value string `json:"value"`
	Label string `json:"label"`
	Count int    `json:"toolCount"`
}

func (c *call) groups(of func(*client.Algorithm) []string) ([]group, error) {
	ready, err := c.readyAlgorithms()
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, a := range ready {
		for _, word := range of(a) {
			count[word]++
		}
	}
	list := []group{}
	for word, n := range count {
		label := strings.ReplaceAll(word, "-", " ")
		if label != "" {
			label = strings.ToUpper(label[:1]) + label[1:]
		}
		list = append(list, group{word, label, n})
	}
	slices.SortFunc(list, func(a, b group) int { return strings.Compare(a.Value, b.Value) })
	return list, nil
}

// modalities handles GET catalog/modalities.
func (c *call) modalities() (any, error) {
	list, err := c.groups(func(a *client.Algorithm) []string { return a.Categories })
	return map[string]any{"modalities": list}, err
}

// functions handles GET catalog/functions.
func (c *call) functions() (any, error) {
	list, err := c.groups(func(a *client.Algorithm) []string { return a.Functions })
	return map[string]any{"functions": list}, err
}
