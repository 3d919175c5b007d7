package sandbox

import (
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
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
	networkNames = []string{"hosts", "resolv.conf"} // made inside, or those of the machine
)

// mostLooks bounds how many files are looked at; what is beyond stays outside.
const mostLooks = 20000

// mostLevels bounds how deep a folder of which not all is open is looked through for what is.
const mostLevels = 3

// settings finds what programs see of a folder of settings.
type settings struct {
	looks int
	read  []string  // is let in anyway
	hide  []string  // stays outside
	links []string  // folders to which symbolic links may point
	state hash.Hash // of all that was looked at; nil: nobody wants to know
}

// settingsOf finds what programs see of /etc.
func settingsOf(read, hide []string) *settings {
	s := &settings{read: read, links: append(slices.Clone(systemFolders), etc, optional, "/proc", "/dev")}
	for _, path := range hide {
		s.hide = append(s.hide, resolved(path))
	}
	return s
}

// seen is a file, or a folder with all that is below it, that programs see; or a symbolic link.
type seen struct {
	path   string
	target string // of a link
}

// all returns what programs see of /etc, or of a folder that stands for it.
func (s *settings) all(dir string) []seen {
	return s.below(dir, slices.Concat(madeInside, serviceNames, networkNames), mostLevels)
}

// below returns all of a folder that everybody may read, its own entries one by one: a file
// that appears or is replaced while a job runs does not appear inside.
func (s *settings) below(dir string, leave []string, levels int) (all []seen) {
	entries, _ := os.ReadDir(dir) // what can't be read stays outside
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case slices.Contains(leave, e.Name()):
		case e.Type()&fs.ModeSymlink != 0:
			if target, ok := s.link(path); ok {
				all = append(all, seen{path, target})
			}
		case s.open(path, e):
			all = append(all, seen{path: path})
		case e.IsDir() && s.public(path, e) && !secret(e.Name()) && !slices.Contains(s.hide, path) && levels > 0:
			all = append(all, s.below(path, nil, levels-1)...)
		}
	}
	return all
}

// link returns the target of a symbolic link, if that is seen inside.
func (s *settings) link(path string) (target string, ok bool) {
	target, err := os.Readlink(path)
	if slices.ContainsFunc(s.read, func(p string) bool { return isBelow(p, path) }) {
		return "", false
	}
	if err != nil || secret(filepath.Base(path)) || secret(filepath.Base(target)) {
		return "", false
	}
	at := target
	if !filepath.IsAbs(at) {
		at = filepath.Join(filepath.Dir(path), at)
	}
	s.note(path, target)
	return target, slices.ContainsFunc(s.links, func(folder string) bool { return isBelow(at, folder) })
}

// open reports whether everybody may read all that is below path, and nothing there is a secret.
func (s *settings) open(path string, e fs.DirEntry) bool {
	if s.looks++; s.looks > mostLooks || secret(e.Name()) || slices.Contains(s.hide, path) {
		return false
	}
	if e.Type()&fs.ModeSymlink != 0 {
		target, _ := os.Readlink(path)
		s.note(path, target)
		return true // it leads nowhere that is not seen
	}
	if !s.public(path, e) {
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
func (s *settings) public(path string, e fs.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		s.note(path, stat.Ino, stat.Mode, stat.Size, stat.Mtim, stat.Ctim)
	}
	return isPublic(info)
}

func isPublic(info fs.FileInfo) bool {
	if info.IsDir() {
		return info.Mode()&0o005 == 0o005
	}
	return info.Mode().IsRegular() && info.Mode()&0o004 != 0
}

// note adds what was looked at to the state.
func (s *settings) note(what ...any) {
	if s.state != nil {
		fmt.Fprintln(s.state, what...)
	}
}

func secret(name string) bool {
	return slices.Contains(secretNames, name) ||
		slices.ContainsFunc(secretBeginnings, func(s string) bool { return strings.HasPrefix(name, s) }) ||
		slices.ContainsFunc(secretEndings, func(s string) bool { return strings.HasSuffix(name, s) })
}
