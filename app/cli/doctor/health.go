package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"molrun/app/base/fault"
	"molrun/app/server/config"
	"molrun/app/server/host"
)

// CheckHealth sends GET /healthz to the service on the data directory of c and returns the
// address that it used. The address comes from the service itself; if this user can't
// query the service, or if listen is set, it comes from listen or the configuration.
// CheckHealth waits until ctx ends.
func CheckHealth(ctx context.Context, c config.Config, listen string) (address string, err error) {
	if listen == "" {
		address, err = serviceAddress(ctx, c.Data)
	}
	if err != nil {
		return "", err
	}
	if address == "" {
		address = scheme(c) + cmp.Or(listen, c.Listen)
	}
	_, port, err := net.SplitHostPort(address[strings.Index(address, "//")+2:])
	if err != nil {
		return address, fault.Errorf(fault.Invalid, "listen: %v; use host:port, such as 127.0.0.1:8080", err)
	}
	if port == "0" {
		return address, errors.New("the service chose its port at startup, and this user can't query it; run this command as the service's user, with its --data")
	}
	return address, getHealth(ctx, address)
}

func scheme(c config.Config) string {
	if c.TLS.On() {
		return "https://"
	}
	return "http://"
}

// serviceAddress gets the service's address over the control socket. It returns "" if this
// user can't read the data directory, if the directory has no database, or if the service
// does not respond.
func serviceAddress(ctx context.Context, data string) (string, error) {
	if _, err := os.Stat(filepath.Join(data, host.Database)); err != nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // leaves time to query its address
	defer cancel()
	if !host.Running(ctx, data) {
		return "", fmt.Errorf("no service is running on the data directory %s", data)
	}
	address, err := host.Control(data).Listener(ctx)
	if err != nil {
		return "", nil // the service is busy: querying its address is more informative
	}
	return address, nil
}

func getHealth(ctx context.Context, address string) error {
	text, err := getLocal(ctx, address, "/healthz")
	if err != nil {
		return err
	}
	var answer struct{ Status string }
	if json.Unmarshal(text, &answer) != nil || answer.Status != "ok" {
		return fmt.Errorf("the server at %s is not a molrun service", address)
	}
	return nil
}

// getLocal sends a request without a key to a service on this machine and returns the
// response body, at most a few MiB. It does not verify certificates: they might not name
// the address used here, the request contains no secret, and whether the service responds
// does not depend on them. It ignores proxies from the environment, which are for other
// machines.
func getLocal(ctx context.Context, address, path string) ([]byte, error) {
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:       dial,
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // see above
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the service does not respond: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the service does not respond: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return text, fmt.Errorf("the service responded %s", response.Status)
	}
	return text, nil
}

// maxAnswer is the maximum size of a response body.
const maxAnswer = 4 << 20

// dial connects to a listener on this machine. If the listener accepts connections on all
// addresses, dial uses a loopback address.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	hosts := []string{host}
	switch ip := net.ParseIP(host); {
	case host == "" || ip.Equal(net.IPv6unspecified):
		hosts = []string{"127.0.0.1", "::1"}
	case ip.Equal(net.IPv4zero):
		hosts = []string{"127.0.0.1"}
	}
	var errs []error
	for _, host := range hosts {
		conn, err := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(host, port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errs[0]
}
