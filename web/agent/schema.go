package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"molrun/app/client"
)

// maxSpec is the maximum size of openapi.yaml.
const maxSpec = 8 << 20

// schemas returns the schemas in the service's description of its API.
func schemas(ctx context.Context, api *client.Client) (map[string]any, error) {
	body, err := api.OpenBody(ctx, nil, "openapi.yaml")
	if err != nil {
		return nil, err
	}
	defer body.Close() // read-only
	text, err := io.ReadAll(io.LimitReader(body, maxSpec))
	if err != nil {
		return nil, err
	}
	var spec struct {
		Components struct {
			Schemas map[string]any `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(text, &spec); err != nil {
		return nil, fmt.Errorf("openapi.yaml of the service: %w", err)
	}
	return spec.Components.Schemas, nil
}

// refPrefix is the prefix of references between schemas.
const refPrefix = "#/components/schemas/"

// schemaOf returns a self-contained schema, with the schemas that it refers to in $defs.
func schemaOf(spec map[string]any, name string) (map[string]any, error) {
	defs := map[string]any{}
	root, err := within(spec, name, defs)
	if err != nil {
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("openapi.yaml of the service has no schema %s", name)
	}
	if len(defs) > 0 {
		object["$defs"] = defs
	}
	return object, nil
}

// within copies a schema and adds the schemas that it refers to to defs.
func within(spec map[string]any, name string, defs map[string]any) (any, error) {
	text, err := json.Marshal(spec[name])
	if err != nil {
		return nil, err
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	return schema, point(spec, schema, defs)
}

// withoutNull removes null from the types of a schema. The service treats null like an
// absent member, and all of these members are optional; some models only support schemas
// with a single type.
func withoutNull(schema map[string]any) {
	types, ok := schema["type"].([]any)
	if !ok {
		return
	}
	types = slices.DeleteFunc(types, func(t any) bool { return t == "null" })
	if schema["type"] = types; len(types) == 1 {
		schema["type"] = types[0]
	}
}

// point redirects the references in a schema to defs.
func point(spec map[string]any, schema any, defs map[string]any) error {
	switch v := schema.(type) {
	case []any:
		for _, element := range v {
			if err := point(spec, element, defs); err != nil {
				return err
			}
		}
	case map[string]any:
		withoutNull(v)
		if ref, ok := v["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, refPrefix)
			v["$ref"] = "#/$defs/" + name
			if _, there := defs[name]; !there {
				defs[name] = true // schemas can be recursive
				def, err := within(spec, name, defs)
				if err != nil {
					return err
				}
				defs[name] = def
			}
		}
		for name, member := range v {
			if name == "$ref" {
				continue
			}
			if err := point(spec, member, defs); err != nil {
				return err
			}
		}
	}
	return nil
}
