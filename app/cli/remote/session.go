package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"molrun/app/base/fault"
	"molrun/app/cli/terminal"
	"molrun/app/client"
)

// UsageError is an error in the command line.
type UsageError struct{ error }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Usage marks err as an error in the command line.
func Usage(err error) error { return UsageError{err} }

// KeyError reports that there is no API key, or that the text can't be one.
type KeyError struct{ error }

// session is the context of a command: the service and the output.
type session struct {
	*terminal.Terminal
	API    *client.Client
	Server string
}

// sessionOptions are the flags shared by all user commands.
type sessionOptions struct {
	server, profile string
	asJSON, quiet   bool
}

// work is the run function of a command that uses a service.
type work func(ctx context.Context, s *session, args []string) error

// withSession adds the shared user flags to a command and makes it call do with a session.
func withSession(c *cobra.Command, do work) *cobra.Command {
	var o sessionOptions
	f := c.Flags()
	f.StringVar(&o.server, "server", "", "address of the service (default $MOLRUN_SERVER, or from the profile)")
	f.StringVar(&o.profile, "profile", "", "saved profile to use (default $MOLRUN_PROFILE, or the last one used)")
	f.BoolVar(&o.asJSON, "json", false, "print JSON (default if the output is not a terminal)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "only print the result")
	completeFlag(c, "profile", completeProfiles)
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := o.session(c)
		if err != nil {
			return err
		}
		defer s.API.Close()
		return do(c.Context(), s, args)
	}
	return c
}

// servicePatience is how long a command tolerates an outage once the service has
// responded.
const servicePatience = 5 * time.Minute

// session connects to the service.
func (o *sessionOptions) session(c *cobra.Command) (*session, error) {
	p, err := o.findProfile(os.Getenv)
	if err != nil {
		return nil, err
	}
	api, err := dial(p)
	if err != nil {
		return nil, err
	}
	api.RetryConnections(servicePatience)
	t := terminal.New(c.OutOrStdout(), c.ErrOrStderr(), os.Getenv)
	t.Quiet = o.quiet
	t.JSON = o.asJSON || !c.Flags().Changed("json") && !t.Interactive
	return &session{Terminal: t, API: api, Server: p.Server}, nil
}

// findProfile returns the service and key to use: flags override environment variables,
// which override profiles. A profile's key is only used for its own service.
func (o *sessionOptions) findProfile(getenv func(string) string) (p Profile, err error) {
	name := cmp.Or(o.profile, getenv("MOLRUN_PROFILE"))
	server := cmp.Or(o.server, getenv("MOLRUN_SERVER"))
	key, err := parseKey(getenv("MOLRUN_KEY"), "in $MOLRUN_KEY")
	if err != nil {
		return p, err
	}
	if server != "" {
		if server, err = serverAddress(server); err != nil {
			return p, err
		}
	}
	if server != "" && key != "" {
		p, _ = savedProfile(getenv, name, server) // only to keep the trusted certificate
		p.Server, p.Key = server, key
		return p, nil
	}
	if p, err = savedProfile(getenv, name, server); err != nil {
		return p, err
	}
	if key == "" {
		key, err = parseKey(p.Key, "that is kept for "+p.Server)
	}
	p.Key = key
	return p, err
}

// savedProfile returns the profile with that name or, without a name, the one for that
// server. Without either, it returns the current profile.
func savedProfile(getenv func(string) string, name, server string) (p Profile, err error) {
	file, _, err := openProfiles(getenv)
	if err != nil {
		return p, err
	}
	if server != "" && name == "" {
		for _, p := range file.Profiles {
			if p.Server == server {
				return p, nil
			}
		}
	}
	if p, err = file.Find(name); err != nil && server == "" {
		return p, KeyError{errors.New(fault.Text(err))}
	}
	if err != nil || server != "" && p.Server != server {
		return Profile{}, KeyError{fmt.Errorf("no API key is saved for %s; run molrun login --server %[1]s, or set MOLRUN_KEY", server)}
	}
	return p, nil
}

// dial returns a client for the service of a profile.
func dial(p Profile) (*client.Client, error) {
	if p.Trust == "" {
		return client.New(p.Server, p.Key), nil
	}
	pem, err := os.ReadFile(p.Trust)
	if err != nil {
		return nil, fmt.Errorf("trusted certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no PEM certificate", p.Trust)
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     time.Minute,
		MaxIdleConnsPerHost: 16,
		ForceAttemptHTTP2:   true,
	}
	return client.NewWith(p.Server, p.Key, transport), nil
}

// jobNames requires the name of at least one job.
func jobNames(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("%s requires the name of a job; molrun jobs lists them", c.CommandPath())
	}
	return nil
}

// oneArgument requires exactly one argument; the error says what it should be.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s requires %s", c.CommandPath(), what)
		}
		return nil
	}
}

// PrintAnswer prints a response as JSON if requested, otherwise in readable form.
func (s *session) PrintAnswer(a client.Answer, people func() error) error {
	if s.JSON {
		return s.PrintJSON(a)
	}
	return people()
}

// Examples indents example lines for the help.
func Examples(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

// serverAddress normalizes the address of a service: with a scheme and without a trailing
// slash.
func serverAddress(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", Usagef("%q is not the address of a service; write http://HOST:PORT or https://HOST, followed by its path if it has one", text)
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Pairs prints names and values, omitting those without a value.
func (s *session) Pairs(rows [][2]string) error {
	width := 0
	for _, row := range rows {
		if row[1] != "" {
			width = max(width, len(row[0]))
		}
	}
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if err := s.Print("%-*s  %s", width, row[0], terminal.Clean(row[1])); err != nil {
			return err
		}
	}
	return nil
}
