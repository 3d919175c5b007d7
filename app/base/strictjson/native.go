package strictjson

import "strconv"

// Native returns the value as a Go value: nil, bool, string, []any, map[string]any, or
// the result of number for a number.
func (v *Value) Native(number func(float64) any) any {
	switch v.Kind {
	case Bool:
		return v.Text == "true"
	case Number:
		n, _ := strconv.ParseFloat(v.Text, 64) // already validated by the parser
		return number(n)
	case String:
		return v.Text
	case Array:
		all := make([]any, len(v.Items))
		for i, item := range v.Items {
			all[i] = item.Native(number)
		}
		return all
	case Object:
		all := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			all[m.Name] = m.Value.Native(number)
		}
		return all
	}
	return nil
}
