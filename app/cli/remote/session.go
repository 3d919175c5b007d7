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

// UsageError is an error in the command line itself.
type UsageError struct{ error }

// Unwrap returns the cause.
func (e UsageError) Unwrap() error { return e.error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Usage marks err as an error in the command line.
func Usage(err error) error { return UsageError{err} }

// KeyError says that no key is at hand, or none that can be one.
type KeyError struct{ error }

// session is what a command works with: a service, and where it writes.
type session struct {
	*terminal.Terminal
	API    *client.Client
	Server string
}

// sessionOptions are the flags that all commands of users have.
type sessionOptions struct {
	server, profile string
	asJSON, quiet   bool
}

// work is what a command does with a service.
type work func(ctx context.Context, s *session, args []string) error

// connected adds the flags of users to a command that does work with a service.
func connected(c *cobra.Command, do work) *cobra.Command {
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

// servicePatience is how long a command continues without the service, once that has answered.
const servicePatience = 5 * time.Minute

// session connects a command with its service.
func (o *sessionOptions) session(c *cobra.Command) (*session, error) {
	p, err := o.findProfile(os.Getenv)
	if err != nil {
		return nil, err
	}
	api, err := dial(p)
	if err != nil {
		return nil, err
	}
	api.Persist(servicePatience)
	t := terminal.New(c.OutOrStdout(), c.ErrOrStderr(), os.Getenv)
	t.Quiet = o.quiet
	t.JSON = o.asJSON || !c.Flags().Changed("json") && !t.Interactive
	return &session{Terminal: t, API: api, Server: p.Server}, nil
}

// findProfile returns the service and key to use: flags over variables over profiles. The key
// of a profile is for its own service alone.
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
		p, _ = keptProfile(getenv, name, server) // the certificate to trust
		p.Server, p.Key = server, key
		return p, nil
	}
	if p, err = keptProfile(getenv, name, server); err != nil {
		return p, err
	}
	if key == "" {
		key, err = parseKey(p.Key, "that is kept for "+p.Server)
	}
	p.Key = key
	return p, err
}

// keptProfile returns the profile of that name, or else of that server, or else the current
// one.
func keptProfile(getenv func(string) string, name, server string) (p Profile, err error) {
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

// dial returns a client of the service of a profile.
func dial(p Profile) (*client.Client, error) {
	if p.Trust == "" {
		return client.New(p.Server, p.Key), nil
	}
	pem, err := os.ReadFile(p.Trust)
	if err != nil {
		return nil, fmt.Errorf("the certificate to trust: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate in PEM", p.Trust)
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

// jobNames wants the names of at least one job.
func jobNames(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("%s requires the name of a job; molrun jobs lists them", c.CommandPath())
	}
	return nil
}

// oneArgument wants exactly one argument, and says what it is.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return Usagef("%s requires %s", c.CommandPath(), what)
		}
		return nil
	}
}

// PrintAnswer prints an answer as JSON, or otherwise for people.
func (s *session) PrintAnswer(a client.Answer, people func() error) error {
	if s.JSON {
		return s.PrintJSON(a)
	}
	return people()
}

// Examples indents the lines of Examples as help shows them.
func Examples(lines ...string) string { return "  " + strings.Join(lines, "\n  ") }

// serverAddress returns the address of a service as it is kept: with a scheme, without a
// slash at its end.
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

// Pairs prints names and values; those without a value are left out.
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
