// Package contract checks in tests that the service follows its OpenAPI description. A
// transport checks each exchange; at the end, Unmet lists the described responses that no
// test has seen. Only tests import it.
package contract

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// location is the URL that the schema compiler knows the document by.
const location = "https://molrun.invalid/openapi.json"

// Spec is an OpenAPI description.
type Spec struct {
	root     map[string]any
	compiler *jsonschema.Compiler
}

// Operation is a method and path in the description.
type Operation struct{ Method, Path string }

// Parse parses a description in YAML.
func Parse(text []byte) (*Spec, error) {
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		return nil, fmt.Errorf("read OpenAPI: %w", err)
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read OpenAPI: the document is not an object")
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("read OpenAPI: %w", err)
	}
	return &Spec{root, compiler}, nil
}

// Operations returns all operations, sorted by path.
func (s *Spec) Operations() []Operation {
	var all []Operation
	for _, path := range sortedKeys(s.at("paths")) {
		for _, key := range sortedKeys(s.at("paths", path)) {
			if method := strings.ToUpper(key); slices.Contains(methods, method) {
				all = append(all, Operation{method, path})
			}
		}
	}
	return all
}

var methods = []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut}

// Statuses returns the statuses that an operation can return.
func (s *Spec) Statuses(op Operation) []string { return sortedKeys(s.at(op.at("responses")...)) }

// Rights returns the rights that an operation needs, which do not depend on how the user
// signs in. It reports false if the operation needs no sign-in.
func (s *Spec) Rights(op Operation) (rights []string, signedIn bool) {
	security, stated := s.at(op.at("security")...).([]any)
	if !stated {
		security, _ = s.at("security").([]any)
	}
	for i, way := range security {
		for _, names := range way.(map[string]any) {
			var needed []string
			for _, name := range names.([]any) {
				needed = append(needed, name.(string))
			}
			if i > 0 && !slices.Equal(needed, rights) {
				panic(op.Method + " " + op.Path + " needs other rights for each way to sign in")
			}
			rights = needed
		}
	}
	return rights, len(security) > 0
}

// at returns the location of a member of the operation.
func (op Operation) at(part ...string) []string {
	return append([]string{"paths", op.Path, strings.ToLower(op.Method)}, part...)
}

// at returns the value at a location in the document, or nil if there is none.
func (s *Spec) at(place ...string) any {
	var value any = s.root
	for _, name := range place {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

// follow returns the target of the reference at a location, or the location itself if
// there is no reference.
func (s *Spec) follow(place ...string) []string {
	object, _ := s.at(place...).(map[string]any)
	if target := s.target(object); target != nil {
		return s.follow(target...)
	}
	return place
}

// target returns the location that a reference points to, or nil if object is not a
// reference.
func (s *Spec) target(object map[string]any) []string {
	ref, _ := object["$ref"].(string)
	if !strings.HasPrefix(ref, "#/") {
		return nil
	}
	parts := strings.Split(ref[2:], "/")
	for i := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
	}
	return parts
}

// schema compiles the schema at a location.
func (s *Spec) schema(place ...string) (*jsonschema.Schema, error) {
	var pointer strings.Builder
	for _, name := range place {
		pointer.WriteString("/" + escapePointer(name))
	}
	return s.compiler.Compile(location + "#" + pointer.String())
}

// escapePointer escapes a name for a JSON pointer in a URL.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D", " ", "%20").Replace(name)
}

// find returns the operation for a request. HEAD is described as GET.
func (s *Spec) find(method, path string) (Operation, bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	best, found := Operation{}, false
	for _, op := range s.Operations() {
		if op.Method == method && fits(op.Path, path) && (!found || strings.Count(op.Path, "{") < strings.Count(best.Path, "{")) {
			best, found = op, true
		}
	}
	return best, found
}

// fits reports whether an escaped path matches a template. A parameter {path} at the end
// of the template matches the rest of the path, including slashes.
func fits(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if n := len(want); want[n-1] == "{path}" && len(got) > n {
		got = append(got[:n-1:n-1], strings.Join(got[n-1:], "/"))
	}
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		parameter := strings.HasPrefix(want[i], "{")
		if parameter && got[i] == "" || !parameter && want[i] != got[i] {
			return false
		}
	}
	return true
}

// content returns the location of the described media type that matches a Content-Type.
func (s *Spec) content(place []string, contentType string) ([]string, bool) {
	place = append(slices.Clone(place), "content")
	got, gotParams, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, false
	}
	for _, name := range sortedKeys(s.at(place...)) {
		if name == "*/*" {
			return append(place, name), true
		}
		want, wantParams, err := mime.ParseMediaType(name)
		if err != nil || want != got {
			continue
		}
		same := true
		for key, value := range wantParams {
			same = same && strings.EqualFold(gotParams[key], value)
		}
		if same {
			return append(place, name), true
		}
	}
	return nil, false
}

func sortedKeys(value any) []string {
	object, _ := value.(map[string]any)
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
