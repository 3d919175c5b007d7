package strictjson

import "encoding/json"

// Shown returns the members of an object that tables show: the first hundred numbers,
// strings and booleans.
func Shown(object json.RawMessage) (shown []Member) {
	const most, longestName = 100, 100
	all, err := Parse(object)
	if err != nil {
		return nil
	}
	for _, m := range all.Members {
		switch m.Value.Kind {
		case Number, String, Bool:
			if len(shown) < most && len(m.Name) <= longestName {
				shown = append(shown, m)
			}
		}
	}
	return shown
}
