package plaintext

import "testing"

func TestOutputBecomesOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " a\nb\t ": "a b", "a\x1b[1mb\x00": "a[1mb", "a\xffb": "a?b", "äöüßx": "äöüßx", "äöüßxy": "äöüßx…",
	} {
		if got := OneLine([]byte(in), 5); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
