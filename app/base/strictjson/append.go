package strictjson

import "encoding/json"

// Append adds a member to the end of a JSON object that has no member of that name. It
// returns the object unchanged if the object or the value is not JSON.
func Append(object json.RawMessage, name string, value any) json.RawMessage {
	encoded, err := Encode(value)
	if err != nil || len(object) < 2 {
		return object
	}
	b := make([]byte, 0, len(object)+len(name)+len(encoded)+4)
	b = append(b, object[:len(object)-1]...)
	if len(object) > 2 {
		b = append(b, ',')
	}
	b = append(append(append(b, '"'), name...), `":`...)
	return append(append(b, encoded...), '}')
}
