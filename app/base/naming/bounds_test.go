package naming

import "testing"

func TestSeparatorsAndDirectionMarksAreRefusedAnywhere(t *testing.T) {
	for _, bad := range []rune{'/', '\\', '\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069'} {
		for _, name := range []string{string(bad) + "a", "a" + string(bad), "a" + string(bad) + "b"} {
			if Check(name) == "" {
				t.Errorf("%+q is accepted", name)
			}
		}
	}
	for _, good := range []string{"a-b", "ä", "a b"} {
		if msg := Check(good); msg != "" {
			t.Errorf("%+q: %s", good, msg)
		}
	}
}
