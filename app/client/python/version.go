package python

import (
	"regexp"
	"strings"
)

// released matches the versions that .ci/version prints: a number, an optional
// pre-release, and build information after a plus. A leading v is ignored.
var released = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:[-~](alpha|beta|rc)\.?(\d+))?(?:\+(.+))?$`)

// stages maps pre-release names to those of PEP 440.
var stages = map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}

// public converts the version of this program to a Python version (PEP 440): 1.2.0~rc.1
// becomes 1.2.0rc1. A version without a number becomes 0.dev0 with the text after a plus.
func public(version string) string {
	m := released.FindStringSubmatch(version)
	if m == nil {
		return "0.dev0" + local(version)
	}
	return m[1] + stages[m[2]] + m[3] + local(m[4])
}

var others = regexp.MustCompile(`[^a-z0-9]+`)

// local converts text to the local part of a Python version, which only distinguishes
// builds.
func local(text string) string {
	text = strings.Trim(others.ReplaceAllString(strings.ToLower(text), "."), ".")
	if text == "" {
		return ""
	}
	return "+" + text
}
