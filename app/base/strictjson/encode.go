package strictjson

import (
	"bytes"
	"encoding/json"
)

// Encode encodes JSON without HTML escapes.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Compact returns a value as it was written, without white space, or nil if v is nil.
func Compact(v *Value) json.RawMessage {
	if v == nil {
		return nil
	}
	b, err := Encode(json.RawMessage(v.Raw))
	if err != nil {
		return v.AppendCanonical(nil)
	}
	return b
}
