package cli

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

	"molrun/storage/kv/boltfile"
)

func lookAtAddress(ctx context.Context, p *patient) []finding {
	address := p.config.Listen
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err == nil {
		listener.Close()
		if p.running {
			return say(doubtful, "the service runs, but not on %s: it was started with another address, or before the setting changed", address)
		}
		return say(fine, "%s is free", address)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return p.lookAtListener(address)
	case errors.Is(err, syscall.EACCES):
		return say(wrong, "this user may not listen on %s; use a port above 1023, or set AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return say(wrong, "no network interface of this machine has the address of %s; use one it has, or :PORT for all", address)
	}
	return say(wrong, "nothing can listen on %s: %v; use an address such as 127.0.0.1:8080", address, err)
}

// lookAtListener looks who uses the address.
func (p *patient) lookAtListener(address string) []finding {
	by, known := listenerOn(address)
	switch {
	case known && p.running && by.PID == p.holder.PID:
		return say(fine, "the service listens on %s", address)
	case known:
		return say(wrong, "%s listens on %s already; stop it, or use another port", by, address)
	case p.running:
		return say(fine, "somebody listens on %s, most likely the service", address)
	}
	return say(wrong, "another process listens on %s already; stop it, or use another port", address)
}

// listenerOn finds the process that listens on the port of an address.
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

// listeningSockets gives the inodes of sockets that listen on a port, of lines
// such as
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

// ownerOf finds the process that has a socket open, among those we may ask.
func ownerOf(inode string) (boltfile.Process, bool) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
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

func lookAtPublicURL(_ context.Context, p *patient) []finding {
	host, port, err := net.SplitHostPort(p.config.Listen)
	if err != nil {
		return say(wrong, "listen: %v; give host:port, such as 127.0.0.1:8080", err)
	}
	if p.config.PublicURL == "" {
		return say(fine, "links begin with the address that the client used")
	}
	u, err := url.Parse(p.config.PublicURL)
	if err != nil {
		return say(wrong, "%v", err) // which the configuration refuses before
	}
	switch {
	case isLoopback(u.Hostname()) && !isLoopback(host):
		return say(wrong, "links begin with %s, which leads every other machine to itself, though the service listens on %s; set public_url to the address that users see", p.config.PublicURL, p.config.Listen)
	case isLoopback(u.Hostname()) && u.Port() != "" && port != "0" && u.Port() != port:
		return say(wrong, "links begin with %s, but the service listens on port %s; make them agree, or leave public_url empty", p.config.PublicURL, port)
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return say(doubtful, "links begin with %s: files go over the network unencrypted; put a proxy with TLS before the service", p.config.PublicURL)
	}
	return say(fine, "links begin with %s", p.config.PublicURL)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
