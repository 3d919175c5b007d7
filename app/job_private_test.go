package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"molrun/app"
)

// TestPrivatePartKeepsNormalSettingsInLittleRoom stores settings as sent with
// those in normal form, and reads the latter again byte for byte.
func TestPrivatePartKeepsNormalSettingsInLittleRoom(t *testing.T) {
	long := strings.Repeat("ACDEFGHIKL", 60)
	for _, tt := range []struct {
		name, sent, normal string
		most               int // bytes of the private part
	}{
		{"equal", `{"a":1,"sequence":"` + long + `"}`, `{"a":1,"sequence":"` + long + `"}`, 200},
		{"another order", `{"sequence":"` + long + `","a":1}`, `{"a":1,"sequence":"` + long + `"}`, 200},
		{"defaults", `{"sequence":"` + long + `"}`, `{"a":7,"sequence":"` + long + `","z":[1,2]}`, 230},
		{"other numbers", `{"sequence":"` + long + `","a":1.50e1}`, `{"a":15,"sequence":"` + long + `"}`, 200},
		{"a changed member", `{"sequence":"` + long + `","a":"X"}`, `{"a":"x","sequence":"` + long + `"}`, 200},
		{"a member that is left out", `{"sequence":"` + long + `","a":null}`, `{"sequence":"` + long + `"}`, 1000},
		{"not in normal form", `{"sequence":"` + long + `"}`, `{"sequence":"` + long + `","a":1}`, 1000},
		{"short", `{"a":1}`, `{"a":1,"b":2}`, 200},
		{"none", `{"a":1}`, ``, 200},
		{"of a batch", ``, `{"sequence":"` + long + `"}`, 1000},
	} {
		j := &app.Job{Settings: json.RawMessage(tt.sent)}
		if tt.sent == "" {
			j.Settings = nil
		}
		if tt.normal != "" {
			j.Private.Normalized = json.RawMessage(tt.normal)
		}
		e, err := j.Encoded()
		must(t, err)
		if len(e.Private) > tt.most {
			t.Errorf("%s: the private part has %d bytes, want at most %d: %s", tt.name, len(e.Private), tt.most, e.Private)
		}
		read := &app.Job{Settings: j.Settings}
		must(t, read.DecodePrivate(e.Private))
		if got := string(read.Private.Normalized); got != tt.normal {
			t.Errorf("%s: read %s, want %s", tt.name, got, tt.normal)
		}
	}
	if err := new(app.Job).DecodePrivate([]byte(`{"added":{"a":1}}`)); err == nil {
		t.Error("settings are put together with none as sent")
	}
}
