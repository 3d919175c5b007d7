package config

import (
	"net/mail"
	"slices"
	"strings"

	"molrun/app/job/notice"
)

// Notify says where notices may go.
type Notify struct {
	Allow Networks `toml:"allow"` // that may be reached though they are not public
	HTTP  bool     `toml:"http"`  // also http://
}

// Mail says how mail is sent. Without a host there is none.
type Mail struct {
	Host         string  `toml:"host"`
	Port         int     `toml:"port"`
	TLS          string  `toml:"tls"` // starttls, tls or none
	User         string  `toml:"user"`
	PasswordFile string  `toml:"password_file"`
	From         string  `toml:"from"`
	Domains      Domains `toml:"domains"` // to whose addresses anyone may send
}

// Notices returns what submissions and webhooks may ask for.
func (c *Config) Notices() notice.Policy {
	return notice.Policy{HTTP: c.Notify.HTTP, Allowed: c.Notify.Allow, Mail: c.Mail.Host != "", Domains: c.Mail.Domains}
}

// Domains are names of domains, separated by commas.
type Domains []string

// UnmarshalText reads domains, such as "lab.example, uni.example".
func (d *Domains) UnmarshalText(text []byte) error {
	*d = nil
	for _, part := range commaList(text) {
		*d = append(*d, strings.ToLower(strings.TrimPrefix(part, "@")))
	}
	return nil
}

// noticeChecks returns the checks of this file's settings.
func (c *Config) noticeChecks() []settingCheck {
	m := c.Mail
	_, err := mail.ParseAddress(m.From)
	return []settingCheck{
		{m.Port < 1 || m.Port > 65535, "mail.port: give 1 to 65535, such as 587"},
		{!slices.Contains([]string{"starttls", "tls", "none"}, m.TLS), "mail.tls: use starttls, tls or none"},
		{m.Host != "" && err != nil, `mail.from: give the sender's address, such as "molrun <molrun@lab.example>"`},
		{(m.User == "") != (m.PasswordFile == ""), "mail: give both user and password_file"},
		{m.User != "" && m.TLS == "none", "mail.tls: a password is only sent encrypted; use starttls or tls"},
	}
}
