package validator

import (
	"bytes"
	"fmt"
	"slices"

	"molrun/app/base/fault"
	"molrun/app/base/plaintext"
	"molrun/app/base/strictjson"
)

// Maximum lengths of the strings in a detail.
const (
	maxDetailText = 2000
	maxTypeText   = 200
)

// parseAnswers parses a validator's output: one array of details or, if many is set, one
// array on a line for each question.
func parseAnswers(output []byte, questions int, many bool) ([][]fault.Field, error) {
	lists := [][]byte{output}
	if many {
		lists = slices.Collect(bytes.Lines(bytes.TrimSpace(output)))
	}
	if len(lists) != questions {
		return nil, fmt.Errorf("%d lines for %d documents", len(lists), questions)
	}
	answers := make([][]fault.Field, questions)
	for i, list := range lists {
		var err error
		if answers[i], err = parseDetails(list); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func parseDetails(text []byte) ([]fault.Field, error) {
	v, err := strictjson.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("output is not JSON: %w", err)
	}
	if v.Kind != strictjson.Array {
		return nil, fmt.Errorf("details must be an array, got %.60q", v.Raw)
	}
	var details []fault.Field
	for _, item := range v.Items {
		f, err := parseDetail(item)
		if err != nil {
			return nil, err
		}
		details = append(details, f)
	}
	return details, nil
}

// parseDetail parses one {"loc":[…],"msg":"…","type":"…"}.
func parseDetail(v *strictjson.Value) (fault.Field, error) {
	loc, msg, typ := v.Member("loc"), v.Member("msg"), v.Member("type")
	if msg == nil || msg.Kind != strictjson.String || msg.Text == "" || loc == nil || loc.Kind != strictjson.Array {
		return fault.Field{}, fmt.Errorf(`a detail needs "loc", a list, and "msg", a text; got %.60q`, v.Raw)
	}
	f := fault.Field{Loc: []any{}, Msg: plaintext.OneLine([]byte(msg.Text), maxDetailText), Type: "value"}
	if typ != nil && typ.Kind == strictjson.String && typ.Text != "" {
		f.Type = plaintext.OneLine([]byte(typ.Text), maxTypeText)
	}
	for _, step := range loc.Items {
		n, whole := step.Int()
		switch {
		case step.Kind == strictjson.String:
			f.Loc = append(f.Loc, step.Text)
		case whole:
			f.Loc = append(f.Loc, int(n))
		default:
			return fault.Field{}, fmt.Errorf(`"loc" can contain only strings and integers, got %.60q`, step.Raw)
		}
	}
	return f, nil
}
