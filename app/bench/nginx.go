package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// nginx is the peer that gives and takes files: by sendfile, and by DAV.
type nginx struct {
	*child
	dir     string
	address string
}

const nginxConfig = `daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log;
worker_processes 2;
events { worker_connections 256; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 1000000;
	client_max_body_size 0;
	client_body_buffer_size 1m;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s;
		root %[1]s/files;
		location /dav/ { dav_methods PUT DELETE; }
	}
}
`

// startNginx starts nginx on a folder of its own, or gives nil where there is
// none.
func startNginx(ctx context.Context, dir string) (*nginx, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, nil
		}
	}
	n := &nginx{dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "files", "dav"), 0o755); err != nil {
		return nil, err
	}
	if n.address, err = freeAddress(); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(nginxConfig, dir, n.address)
	if os.Getuid() == 0 {
		config = "user root;\n" + config // its files are in a folder of ours alone
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	n.child, err = startChild("nginx", exec.Command(program, "-p", dir, "-c", file, "-e", n.log()))
	if err != nil {
		return nil, err
	}
	return n, n.await(ctx, connects(n.address), func() []byte {
		text, _ := os.ReadFile(n.log())
		return text
	})
}

func (n *nginx) log() string { return filepath.Join(n.dir, "error.log") }

// pids gives the processes, the first of which starts the others.
func (n *nginx) pids() []int {
	first := n.pid()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", first))
	all := []int{first}
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

func (n *nginx) stop() error {
	if n == nil {
		return nil
	}
	return n.child.stop()
}
