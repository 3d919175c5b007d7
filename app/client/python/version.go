package python

import (
	"regexp"
	"strings"
)

// released matches the versions that .ci/version prints: a number, perhaps of a
// pre-release, and after a plus what was built. A v in front is ignored.
var released = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:[-~](alpha|beta|rc)\.?(\d+))?(?:\+(.+))?$`)

// stages are the words of PEP 440 for pre-releases.
var stages = map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}

// public returns the version of this program as Python versions are written (PEP 440):
// 1.2.0~rc.1 is 1.2.0rc1, and one without a number is 0.dev0 with the text after a plus.
func public(version string) string {
	m := released.FindStringSubmatch(version)
	if m == nil {
		return "0.dev0" + local(version)
	}
	return m[1] + stages[m[2]] + m[3] + local(m[4])
}

var others = regexp.MustCompile(`[^a-z0-9]+`)

// local returns text as the part of a version that only distinguishes builds.
func local(text string) string {
	text = strings.Trim(others.ReplaceAllString(strings.ToLower(text), "."), ".")
	if text == "" {
		return ""
	}
	return "+" + text
}
