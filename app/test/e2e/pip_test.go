package e2e

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"molrun/app/test/must"
)

// TestPipInstallsFromTheServiceAlone follows the service's page on clients with pip and
// no package index, with the service at the root and below a path of a proxy.
func TestPipInstallsFromTheServiceAlone(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	if exec.Command(python, "-m", "ensurepip", "--version").Run() != nil {
		must.Skip(t, "python3-venv is not installed")
	}
	venv := filepath.Join(t.TempDir(), "venv")
	must.OK(t, exec.Command(python, "-m", "venv", venv).Run())
	pip := func(args ...string) string {
		command := exec.Command(filepath.Join(venv, "bin", "pip"), args...)
		command.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "PIP_CONFIG_FILE=" + os.DevNull, "PIP_NO_INDEX=1"}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("pip %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	for _, u := range []user{plain(t).user("lab", "ann@lab.example"), behindPath(t)} {
		base, page := u.base, html.UnescapeString(openPage(t, u.base+"/client/"))
		install := regexp.MustCompile(`pip install (\S+)`).FindStringSubmatch(page)
		script := regexp.MustCompile(`python3 -c '(.+)'`).FindStringSubmatch(page)
		wheel := regexp.MustCompile(`href="(molrun-[^"]+\.whl)"`).FindStringSubmatch(page)
		if install == nil || script == nil || wheel == nil || install[1] != base+"/client/molrun.zip" {
			t.Fatalf("%s/client/ does not say how to install:\n%s", base, page)
		}
		version := strings.Split(wheel[1], "-")[1]
		for _, from := range []string{install[1], base + "/client/" + wheel[1]} {
			pip("install", "--force-reinstall", from)
			if shown := pip("show", "--files", "molrun"); !strings.Contains(shown, "Version: "+version+"\n") || !strings.Contains(shown, "molrun/py.typed\n") {
				t.Errorf("%s installs\n%s", from, shown)
			}
			pip("check")
		}
		shown, err := exec.Command(filepath.Join(venv, "bin", "python3"), "-c", strings.ReplaceAll(script[1], "YOUR_KEY", u.key)).CombinedOutput()
		if err != nil || !strings.Contains(string(shown), "ann@lab.example") {
			t.Errorf("%s shows %s: %v", script[1], shown, err)
		}
		if got := openPage(t, base+"/client/molrun.whl"); !strings.HasPrefix(got, "PK") {
			t.Errorf("%s/client/molrun.whl leads to no wheel", base)
		}
	}
}

// behindPath starts a service behind a proxy that serves it below a path, and returns a
// user who connects through the proxy.
func behindPath(t *testing.T) user {
	t.Helper()
	var target atomic.Pointer[url.URL]
	proxy := httptest.NewServer(http.StripPrefix("/molrun", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target.Load())
	}}))
	t.Cleanup(proxy.Close)
	base := proxy.URL + "/molrun"
	u := startServer(t, serverOptions{config: fmt.Sprintf("public_url = %q\n", base)}).user("lab", "ann@lab.example")
	service, err := url.Parse(u.base)
	must.OK(t, err)
	target.Store(service)
	u.base = base
	return u
}

// openPage follows redirects and returns the page that a browser would show.
func openPage(t *testing.T, address string) string {
	t.Helper()
	resp, err := (&http.Client{Timeout: patience}).Get(address)
	must.OK(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must.OK(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %d %s", address, resp.StatusCode, text)
	}
	return string(text)
}
