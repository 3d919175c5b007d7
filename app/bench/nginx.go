package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nginx is the peer that gives and takes files: by sendfile, and by DAV.
type nginx struct {
	dir     string
	address string
	process *exec.Cmd
	ended   chan error
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
	n.process = exec.Command(program, "-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"))
	n.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	n.ended = make(chan error, 1)
	go func() { n.ended <- n.process.Wait() }()
	return n, n.answers(ctx)
}

func (n *nginx) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if c, err := dial(n.address); err == nil {
			c.close()
			return nil
		}
		select {
		case err := <-n.ended:
			n.ended <- err
			text, _ := os.ReadFile(filepath.Join(n.dir, "error.log"))
			return fmt.Errorf("nginx ended at its start: %w: %.1000s", err, text)
		case <-ctx.Done():
			return fmt.Errorf("wait for nginx: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// pids gives the processes, the first of which starts the others.
func (n *nginx) pids() []int {
	first := n.process.Process.Pid
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
	_ = n.process.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-n.ended:
		return err
	case <-time.After(30 * time.Second):
		_ = n.process.Process.Kill()
		return errors.Join(errors.New("nginx did not stop"), <-n.ended)
	}
}
