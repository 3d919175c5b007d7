package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"molrun/app/algorithm"
	"molrun/app/algorithm/builtin"
)

// exampleFile is the prefix of the name of a file that comes with an algorithm.
const exampleFile = "example:"

// Settings uploads the files of an example and returns its settings with references to
// the uploads.
func (t *Tester) Settings(ctx context.Context, a *algorithm.File) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(a.Example.Settings))
	decoder.UseNumber()
	var settings map[string]any
	if err := decoder.Decode(&settings); err != nil {
		return nil, fmt.Errorf("read the example's settings: %w", err)
	}
	for _, p := range a.Parameters.Files() {
		value, err := t.upload(ctx, a, settings[p.Name])
		if err != nil {
			return nil, fmt.Errorf("upload %s: %w", p.Name, err)
		}
		if value != nil {
			settings[p.Name] = value
		}
	}
	return json.Marshal(settings)
}

// upload uploads the example files that a value names, including those in lists, and
// returns the value with references to the uploads.
func (t *Tester) upload(ctx context.Context, a *algorithm.File, value any) (any, error) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			item, err := t.upload(ctx, a, v[i])
			if err != nil {
				return nil, err
			}
			v[i] = item
		}
	case string:
		name, ok := strings.CutPrefix(v, exampleFile)
		if !ok {
			return v, nil
		}
		text, err := builtin.ExampleOf(a, name)
		if err != nil {
			return nil, err
		}
		return t.Upload(ctx, a.Type, name, text)
	}
	return value, nil
}

// Upload uploads a file and returns a reference to it.
func (t *Tester) Upload(ctx context.Context, folder, name string, text []byte) (reference string, err error) {
	file, err := t.API.UploadBytes(ctx, folder, name, text)
	if err != nil {
		return "", err
	}
	return file.ID, nil
}
