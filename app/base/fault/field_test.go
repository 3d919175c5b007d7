package fault

import "testing"

func TestFieldSaysWhereAndWhat(t *testing.T) {
	for want, f := range map[string]Field{
		"body.settings[2].steps: use a number":                  {Loc: []any{"body", "settings", 2, "steps"}, Msg: "use a number"},
		"body.settings[1000000].steps: use a number":            {Loc: []any{"body", "settings", 1e6, "steps"}, Msg: "use a number"}, // as decoded from JSON
		`body.fanOut.each.*: line 2, column "pH": use a number`: {Loc: []any{"body", "fanOut", "each", "*", 2.0, "pH"}, Msg: `line 2, column "pH": use a number`},
		`body.settings.x[12]: line 1: break off`:                {Loc: []any{"body", "settings", "x", 12}, Msg: "line 1: break off"},
		": settings must be one JSON object":                    {Msg: "settings must be one JSON object"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
