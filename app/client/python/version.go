package python

import (
	"regexp"
	"strings"
)

// released matches versions that git describe and Go give: a tag, perhaps of a
// pre-release, then commits since and what was built.
var released = regexp.MustCompile(`^v?(\d+(?:\.\d+)*)(?:-(alpha|beta|rc)\.?(\d+))?(?:-(\d+)-g([0-9a-f]+))?((?:[-+]dirty)?)$`)

// pseudo matches the versions that Go makes of commits without a tag.
var pseudo = regexp.MustCompile(`^v(\d+\.\d+\.\d+)-(?:[0-9a-z.]*\.)?(\d{14})-([0-9a-f]{12})((?:\+dirty)?)$`)

// stages are the words of PEP 440 for pre-releases.
var stages = map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}

// public returns the version of this program as Python versions are written (PEP 440):
// v1.2.0-rc.1 is 1.2.0rc1, v1.2.0-5-gabcdef 1.2.0.post5+gabcdef, and one without a number
// 0.dev0 with what it says after a plus.
func public(version string) string {
	if m := pseudo.FindStringSubmatch(version); m != nil {
		return m[1] + ".dev" + m[2] + local(m[3]+m[4])
	}
	m := released.FindStringSubmatch(version)
	if m == nil {
		return "0.dev0" + local(version)
	}
	number := m[1]
	if m[2] != "" {
		number += stages[m[2]] + m[3]
	}
	if m[4] == "" {
		return number + local(m[6])
	}
	return number + ".post" + m[4] + local("g"+m[5]+m[6])
}

var others = regexp.MustCompile(`[^a-z0-9]+`)

// local returns text as the part of a version that only tells builds apart.
func local(text string) string {
	text = strings.Trim(others.ReplaceAllString(strings.ToLower(text), "."), ".")
	if text == "" || text == "dev" {
		return ""
	}
	return "+" + text
}
