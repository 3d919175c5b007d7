package doctor

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"molrun/app/server/host"
	"molrun/storage/kv/boltfile"
)

func checkAddress(ctx context.Context, in *installation) []Finding {
	address := in.config.Listen
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		listener.Close()
		if in.running {
			return in.checkOtherListener(ctx, address)
		}
		return finding(OK, "%s is free", address)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return in.checkListener(address)
	case errors.Is(err, syscall.EACCES):
		return finding(Problem, "this user is not allowed to listen on %s; use a port above 1023 behind a proxy, or set the sysctl net.ipv4.ip_unprivileged_port_start; do not use AmbientCapabilities, with which bubblewrap does not run", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return finding(Problem, "no network interface of this machine has the address of %s; use one it has, or :PORT for all", address)
	}
	return finding(Problem, "cannot listen on %s: %v; use an address such as 127.0.0.1:8080", address, err)
}

// checkOtherListener checks a running service that does not listen on the configured
// address.
func (in *installation) checkOtherListener(ctx context.Context, address string) []Finding {
	listener, err := host.Control(in.data).Listener(ctx)
	switch _, port, _ := net.SplitHostPort(address); {
	case err != nil || listener == "":
		return finding(Warning, "the service is running, but not on %s: it was started with another address, or before the setting changed", address)
	case port == "0":
		return finding(OK, "the service listens on %s, a port that it chose", listener)
	}
	return finding(Warning, "the service listens on %s, not on %s: it was started with another address, or before the setting changed", listener, address)
}

// checkListener identifies the process that listens on the address.
func (in *installation) checkListener(address string) []Finding {
	by, known := listenerOn(address)
	switch {
	case known && in.running && by.PID == in.holder.PID:
		return finding(OK, "the service listens on %s", address)
	case known:
		return finding(Problem, "%s already listens on %s; stop it, or use another port", by, address)
	case in.running:
		return finding(OK, "a process listens on %s, most likely the service", address)
	}
	return finding(Problem, "another process already listens on %s; stop it, or use another port", address)
}

// listenerOn returns the process that listens on the port of an address.
func listenerOn(address string) (boltfile.Process, bool) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return boltfile.Process{}, false
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return boltfile.Process{}, false
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		for _, inode := range listeningSockets(table, n) {
			if p, ok := ownerOf(inode); ok {
				return p, true
			}
		}
	}
	return boltfile.Process{}, false
}

// listeningSockets returns the inodes of sockets that listen on a port, from lines such
// as
//
//	0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 …
func listeningSockets(table string, port int) (inodes []string) {
	f, err := os.Open(table)
	if err != nil {
		return nil
	}
	defer f.Close()
	ending := fmt.Sprintf(":%X", binary.BigEndian.AppendUint16(nil, uint16(port)))
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], ending) {
			inodes = append(inodes, fields[9])
		}
	}
	return inodes
}

// ownerOf returns the process that has a socket open, among the processes that this user
// can inspect.
func ownerOf(inode string) (boltfile.Process, bool) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != "socket:["+inode+"]" {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if err != nil {
			continue
		}
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return boltfile.Process{PID: pid, Name: strings.TrimSpace(string(name))}, err == nil
	}
	return boltfile.Process{}, false
}

func checkPublicURL(ctx context.Context, in *installation) []Finding {
	_, port, err := net.SplitHostPort(in.config.Listen)
	if err != nil {
		return finding(Problem, "listen: %v; use host:port, such as 127.0.0.1:8080", err)
	}
	if in.config.PublicURL == "" {
		return finding(OK, "links begin with the address that the client used")
	}
	u, err := url.Parse(in.config.PublicURL)
	if err != nil {
		return finding(Problem, "%v", err) // Config.Check already rejects it
	}
	switch {
	case isLoopback(u.Hostname()):
		return checkLoopbackURL(ctx, in, u, port)
	case u.Scheme == "http":
		return finding(Warning, "links begin with %s: files cross the network unencrypted; put a proxy with TLS in front of the service", in.config.PublicURL)
	}
	return finding(OK, "links begin with %s", in.config.PublicURL)
}

// checkLoopbackURL checks links to a loopback address, which every machine resolves to
// itself. Such links are correct if all users work on this machine, or connect through
// tunnels or a proxy that end here.
func checkLoopbackURL(ctx context.Context, in *installation, u *url.URL, port string) []Finding {
	host, _, _ := net.SplitHostPort(in.config.Listen) // can't fail: it has already been split above
	switch {
	case u.Port() != "" && u.Port() != port && port != "0" && !listens(ctx, u.Host):
		return finding(Problem, "links begin with %s, where nothing listens: the service uses port %s; make them match, start the proxy, or leave public_url empty", in.config.PublicURL, port)
	case !isLoopback(host):
		return finding(Warning, "links begin with %s, which other machines resolve to themselves, but the service listens on %s; this is fine if all users work on this machine; otherwise set public_url to the address that they use", in.config.PublicURL, in.config.Listen)
	}
	return finding(OK, "links begin with %s, for users on this machine", in.config.PublicURL)
}

// listens reports whether an address accepts connections.
func listens(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
