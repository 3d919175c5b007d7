package apikey

import "testing"

func TestNetworkFromText(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7": "10.0.0.7/32", "10.0.0.7/8": "10.0.0.0/8", "2001:db8::1": "2001:db8::1/128", "2001:db8::1/32": "2001:db8::/32", "0.0.0.0/0": "0.0.0.0/0",
	} {
		if got, err := Network(text); err != nil || got.String() != want {
			t.Errorf("%s is %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "lab", "10.0.0", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.7", "::ffff:10.0.0.0/104", " 10.0.0.7"} {
		if got, err := Network(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
