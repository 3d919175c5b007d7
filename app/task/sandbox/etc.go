package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// etc is the machine's settings, of which programs see what they need to compute.
const etc = "/etc"

// shownOfEtc are patterns of the entries of /etc that are visible in the sandbox. None describes other services or
// people; algorithms list what else they need. Users, groups and hosts are generated, see descriptors.names.
var shownOfEtc = []string{
	// The dynamic linker, the C library, and what scripts ask about the system.
	"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-*", "alternatives", "nsswitch.conf", "host.conf", "gai.conf",
	"protocols", "services", "localtime", "timezone", "locale.conf", "mtab", "*-release", "debian_version",
	// Shells of a login.
	"profile", "profile.d", "bashrc", "bash.bashrc", "csh.cshrc", "csh.login",
	// Certificates and what is accepted of them.
	"ssl/certs", "ssl/cert.pem", "ssl/ca-bundle.pem", "ssl/openssl.cnf", "ca-certificates",
	"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "pki/java", "crypto-policies",
	// Languages.
	"R", "java*", ".java", "matplotlibrc", "octave*", "julia", "perl", "python*", "xml",
	// GPUs, pictures and documents.
	"OpenCL", "glvnd", "nvidia", "vulkan", "cufile.json", "drirc", "fonts", "pango", "gtk-*", "ghostscript",
	"papersize", "paperspecs", "texmf", "GraphicsMagick*", "ImageMagick*", "chromium*",
	"grace", "povray", "magic", "magic.mime", "mime.types",
	// MPI and fast networks.
	"mpich*", "mvapich*", "openmpi*", "pmix*", "prte*", "ucx", "dat.conf", "libibverbs.d",
	// Quantum chemistry.
	"nwchem*",
}

// showsOfEtc reports whether programs see what is at a path below /etc.
func showsOfEtc(at string) bool {
	parts := strings.Split(strings.TrimPrefix(at, etc+"/"), "/")
	return slices.ContainsFunc(shownOfEtc, func(pattern string) bool {
		levels := min(strings.Count(pattern, "/")+1, len(parts))
		matches, _ := path.Match(pattern, strings.Join(parts[:levels], "/")) // a test reads the patterns
		return matches
	})
}

// settings are bwrap's arguments that let in what programs see of a folder, which is /etc except in tests. An entry
// that leads to what they see anyway stays a symbolic link: its target says which time zone it is, for one.
func settings(dir string, read []string) (a []string) {
	for _, name := range shown(dir) {
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

// shown returns the names that the list means for a folder, whether they are there or not.
func shown(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // what can't be read stays outside
	for _, pattern := range shownOfEtc {
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

// keptLink returns the target of a link that stays one inside: it leads to what programs see, and nothing at or below
// its path is let in by itself.
func keptLink(from, to string, read []string) (target string, ok bool) {
	target, err := os.Readlink(from)
	replaced := slices.ContainsFunc(read, func(p string) bool { return isBelow(p, to) })
	return target, err == nil && !replaced && leadsInside(to, target)
}

// leadsInside reports whether programs see what a symbolic link names.
func leadsInside(link, target string) bool {
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(link), target)
	}
	return Shows(target) || isBelow(target, "/proc")
}
