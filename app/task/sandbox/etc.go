package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// etc holds the machine's configuration, of which programs see only what they need to
// compute.
const etc = "/etc"

// visibleEtc are patterns of the entries of /etc that are visible in the sandbox. None
// describes other services or people; algorithms list what else they need. Users, groups
// and hosts are generated; see descriptors.names.
var visibleEtc = []string{
	// The dynamic linker, the C library, and information about the system for scripts.
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*", "alternatives", "nsswitch.conf", "host.conf", "gai.conf",
	"protocols", "services", "localtime", "timezone", "locale.conf", "mtab", "*-release", "debian_version",
	// Login shells.
	"profile", "profile.d", "bashrc", "bash.bashrc", "csh.cshrc", "csh.login",
	// Certificates and TLS settings.
	"ssl/certs", "ssl/cert.pem", "ssl/ca-bundle.pem", "ssl/openssl.cnf", "ca-certificates",
	"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "pki/java", "crypto-policies",
	// Languages.
	"R", "java*", ".java", "matplotlibrc", "octave*", "julia", "perl", "python*", "xml",
	// GPUs, images and documents.
	"OpenCL", "glvnd", "nvidia", "vulkan", "cufile.json", "drirc", "fonts", "pango", "gtk-*", "ghostscript",
	"papersize", "paperspecs", "texmf", "GraphicsMagick*", "ImageMagick*", "chromium*",
	"grace", "povray", "magic", "magic.mime", "mime.types",
	// MPI and fast networks.
	"mpich*", "mvapich*", "openmpi*", "pmix*", "prte*", "ucx", "dat.conf", "libibverbs.d",
	// Quantum chemistry.
	"nwchem*",
}

// isVisibleInEtc reports whether programs see a path below /etc.
func isVisibleInEtc(at string) bool {
	parts := strings.Split(strings.TrimPrefix(at, etc+"/"), "/")
	return slices.ContainsFunc(visibleEtc, func(pattern string) bool {
		levels := min(strings.Count(pattern, "/")+1, len(parts))
		matches, _ := path.Match(pattern, strings.Join(parts[:levels], "/")) // a test checks the patterns
		return matches
	})
}

// etcArguments returns bwrap's arguments that make entries of a folder visible, which is /etc
// except in tests. A symbolic link to something that is visible anyway stays a link,
// because its target has a meaning, such as the time zone.
func etcArguments(dir string, read []string) (a []string) {
	for _, name := range matchingEntries(dir) {
		from, to := filepath.Join(dir, name), filepath.Join(etc, name)
		info, err := os.Stat(from)
		if err != nil || !isPublic(info) {
			continue
		}
		if target, ok := keptLink(from, to, read); ok {
			a = append(a, "--symlink", target, to)
		} else {
			a = append(a, "--ro-bind-try", from, to)
		}
	}
	return a
}

// matchingEntries returns the names in a folder that match the list, whether they exist or not.
func matchingEntries(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // unreadable entries stay hidden
	for _, pattern := range visibleEtc {
		if !strings.Contains(pattern, "*") {
			names = append(names, pattern)
			continue
		}
		for _, e := range entries {
			if matches, _ := path.Match(pattern, e.Name()); matches {
				names = append(names, e.Name())
			}
		}
	}
	return names
}

// keptLink returns the target of a link that stays a link in the sandbox, because it
// leads to something visible and nothing at or below its path is made visible separately.
func keptLink(from, to string, read []string) (target string, ok bool) {
	target, err := os.Readlink(from)
	replaced := slices.ContainsFunc(read, func(p string) bool { return isBelow(p, to) })
	return target, err == nil && !replaced && leadsInside(to, target)
}

// leadsInside reports whether programs see the target of a symbolic link.
func leadsInside(link, target string) bool {
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	return IsVisible(target) || isBelow(target, "/proc")
}
