package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"molrun/app/test/whole"
)

// nginx is the server that molrun is compared with for downloads (sendfile) and uploads
// (DAV).
type nginx struct {
	process *child
	files   string // the directory it serves
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

// startNginx starts nginx in its own directory. It returns nil if nginx is not installed.
func startNginx(ctx context.Context, dir string) (*nginx, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, nil
		}
	}
	n := &nginx{files: filepath.Join(dir, "files")}
	if err := os.MkdirAll(filepath.Join(n.files, "dav"), 0o755); err != nil {
		return nil, err
	}
	if n.address, err = whole.FreeAddress(); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(nginxConfig, dir, n.address)
	if os.Getuid() == 0 {
		text = "user root;\n" + text // only root can access the directory
	}
	config, log := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "error.log")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	n.process, err = startChild("nginx", exec.Command(program, "-p", dir, "-c", config, "-e", log))
	if err != nil {
		return nil, err
	}
	return n, n.process.await(ctx, connects(n.address), func() []byte {
		text, _ := os.ReadFile(log)
		return text
	})
}

// pids returns the PIDs of the master process and its workers.
func (n *nginx) pids() []int {
	master := n.process.pid()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", master))
	all := []int{master}
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
	return n.process.stop()
}
