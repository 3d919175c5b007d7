package command

import "molrun/app/strictjson"

// Argument is one element of a command: one argument, or several that depend on
// a setting having a value.
type Argument struct {
	Text Template
	When string // setting; "": always Text
	Then []Template
}

// Argv returns the arguments of a command, its placeholders replaced: one
// argument for each template, whatever its text.
func Argv(command []Argument, v *Values) ([]string, error) {
	var argv []string
	for _, arg := range command {
		texts := []Template{arg.Text}
		if arg.When != "" {
			texts = arg.Then
			if !v.given(arg.When) {
				continue
			}
		}
		for _, t := range texts {
			text, err := t.Expand(v)
			if err != nil {
				return nil, err
			}
			argv = append(argv, text)
		}
	}
	return argv, nil
}

// given is the meaning of "if": the setting has a value that is neither null
// nor false. 0 and "" are values.
func (v *Values) given(name string) bool {
	value := v.Settings.Member(name)
	return value != nil && value.Kind != strictjson.Null && (value.Kind != strictjson.Bool || value.Text == "true")
}
