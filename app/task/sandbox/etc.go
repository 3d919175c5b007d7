package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// etc is the machine's settings, of which programs see what everybody may read.
const etc = "/etc"

// Programs find their own /etc/passwd, /etc/group and /etc/hosts inside. What else is left out
// holds secrets or tells of other services.
var (
	madeInside  = []string{"passwd", "passwd-", "group", "group-", "subuid", "subuid-", "subgid", "subgid-"}
	secretNames = []string{
		"shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "sudoers.d", "opasswd", "private", "keys", "munge", "ipsec.d", "wireguard",
		"pip.conf", "npmrc", "gitconfig", "wgetrc", "netrc", "fstab", "crypttab", "credentials", "environment",
	}
	secretBeginnings = []string{"molrun", "ssh_host_", "krb5.keytab"}
	secretEndings    = []string{".key", ".keytab", ".p12", ".pfx", "_rsa", "_ed25519", "_ecdsa"}
	serviceNames     = []string{
		"PackageKit", "NetworkManager", "apache2", "apparmor.d", "apt", "binfmt.d", "cni", "containers", "cron.d", "cron.daily", "cron.hourly",
		"cron.monthly", "cron.weekly", "dbus-1", "default", "dhcp", "docker", "dpkg", "grub.d", "httpd", "init.d", "initramfs-tools", "kernel",
		"kubernetes", "libvirt", "lighttpd", "logcheck", "logrotate.d", "lvm", "modprobe.d", "modules-load.d", "mysql", "network", "nginx",
		"pam.d", "pki-nssdb", "polkit-1", "postgresql", "postgresql-common", "prometheus", "grafana", "rc0.d", "rc1.d", "rc2.d", "rc3.d", "rc4.d",
		"rc5.d", "rc6.d", "rcS.d", "security", "selinux", "skel", "ssh", "sysctl.d", "systemd", "tmpfiles.d", "udev", "ufw", "update-motd.d", "yum.repos.d",
	}
)

// mostLooks bounds how many files are looked at; what is beyond stays outside.
const mostLooks = 20000

// settings finds what programs see of a folder of settings.
type settings struct {
	looks int
	read  []string // is let in anyway
	links []string // folders to which symbolic links may point
}

// arguments are bwrap's for all of a folder that everybody may read, its own entries one by one: a file
// that appears or is replaced while a job runs does not appear inside.
func (s *settings) arguments(dir string, hide []string) (a []string) {
	entries, _ := os.ReadDir(dir) // what can't be read stays outside
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(hide, e.Name()):
		case e.Type()&fs.ModeSymlink != 0:
			a = append(a, s.link(path)...)
		case s.open(path, e):
			a = append(a, "--ro-bind-try", path, path)
		case e.IsDir() && public(e) && !secret(e.Name()) && strings.Count(path, "/") < 5:
			a = append(a, s.arguments(path, nil)...)
		}
	}
	return a
}

// link makes a symbolic link whose target is seen inside.
func (s *settings) link(path string) []string {
	target, err := os.Readlink(path)
	if slices.ContainsFunc(s.read, func(p string) bool { return isBelow(p, path) }) {
		return nil
	}
	if err != nil || secret(filepath.Base(path)) || secret(filepath.Base(target)) {
		return nil
	}
	at := target
	if !filepath.IsAbs(at) {
		at = filepath.Join(filepath.Dir(path), at)
	}
	if !slices.ContainsFunc(s.links, func(folder string) bool { return isBelow(at, folder) }) {
		return nil
	}
	return []string{"--symlink", target, path}
}

// open reports whether everybody may read all that is below path, and nothing there is a secret.
func (s *settings) open(path string, e fs.DirEntry) bool {
	if s.looks++; s.looks > mostLooks || secret(e.Name()) {
		return false
	}
	if e.Type()&fs.ModeSymlink != 0 {
		return true // it leads nowhere that is not seen
	}
	if !public(e) {
		return false
	}
	if !e.IsDir() {
		return true
	}
	entries, err := os.ReadDir(path)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return !s.open(filepath.Join(path, e.Name()), e)
	})
}

// public reports whether everybody may read the file or enter the folder.
func public(e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	if info.IsDir() {
		return info.Mode()&0o005 == 0o005
	}
	return info.Mode().IsRegular() && info.Mode()&0o004 != 0
}

func secret(name string) bool {
	return slices.Contains(secretNames, name) ||
		slices.ContainsFunc(secretBeginnings, func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(secretEndings, func(s string) bool { return strings.HasSuffix(name, s) })
}
