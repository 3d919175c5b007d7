package config

import (
	"net/mail"
	"slices"
	"strings"

	"molrun/app/job/notice"
)

// Notify configures the permitted targets of notifications.
type Notify struct {
	Allow Networks `toml:"allow"` // non-public networks that are permitted
	HTTP  bool     `toml:"http"`  // also permit http://
}

// Mail configures sending e-mail. If Host is "", no e-mail is sent.
type Mail struct {
	Host         string  `toml:"host"`
	Port         int     `toml:"port"`
	TLS          string  `toml:"tls"` // starttls, tls or none
	User         string  `toml:"user"`
	PasswordFile string  `toml:"password_file"`
	From         string  `toml:"from"`
	Domains      Domains `toml:"domains"` // recipient domains that anyone can send to
}

// Notices returns the policy for notifications requested by submissions and webhooks.
func (c *Config) Notices() notice.Policy {
	return notice.Policy{HTTP: c.Notify.HTTP, Allowed: c.Notify.Allow, Mail: c.Mail.Host != "", Domains: c.Mail.Domains}
}

// Domains is a comma-separated list of domain names.
type Domains []string

// UnmarshalText parses domains, such as "lab.example, uni.example".
func (d *Domains) UnmarshalText(text []byte) error {
	*d = nil
	for _, part := range commaList(text) {
		*d = append(*d, strings.ToLower(strings.TrimPrefix(part, "@")))
	}
	return nil
}

// noticeChecks returns the checks of the settings in this file.
func (c *Config) noticeChecks() []settingCheck {
	m := c.Mail
	_, err := mail.ParseAddress(m.From)
	return []settingCheck{
		{m.Port < 1 || m.Port > 65535, "mail.port: must be 1 to 65535, such as 587"},
		{!slices.Contains([]string{"starttls", "tls", "none"}, m.TLS), "mail.tls: use starttls, tls or none"},
		{m.Host != "" && err != nil, `mail.from: must be the sender's address, such as "molrun <molrun@lab.example>"`},
		{(m.User == "") != (m.PasswordFile == ""), "mail: set both user and password_file"},
		{m.User != "" && m.TLS == "none", "mail.tls: a password is only sent encrypted; use starttls or tls"},
	}
}
