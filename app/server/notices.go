package server

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"molrun/app/base/fault"
	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/app/server/config"
)

// Labels of attempts to send notifications.
const (
	byWebhook = "webhook"
	byMail    = "mail"
	toRetry   = "retry"
)

// messenger sends notifications.
type messenger struct {
	config   config.Config
	log      zerolog.Logger
	attempts *prometheus.CounterVec
	webhooks *delivery.Poster
	sender   *delivery.Sender
}

// newMessenger creates the sender of notifications and registers its metric.
func newMessenger(s *service, registry *prometheus.Registry) (*messenger, error) {
	m := &messenger{config: s.config, log: s.log, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "molrun_notice_attempts_total",
		Help: "Attempts to deliver notifications by kind and result: delivered, retry, or failed (given up).",
	}, []string{"kind", "result"})}
	registry.MustRegister(m.attempts)
	for _, kind := range []string{byWebhook, byMail} {
		for _, result := range []string{string(notice.Delivered), toRetry, string(notice.Abandoned)} {
			m.attempts.WithLabelValues(kind, result)
		}
	}
	m.webhooks = delivery.NewPoster(delivery.PostOptions{Policy: s.config.Notices(), Agent: "molrun/" + cmp.Or(s.version, "unknown")})
	o := delivery.SenderOptions{Now: time.Now, Post: m.webhooks.Post, Link: m.jobLink, OnAttempt: m.tried, Warn: func(err error) {
		m.log.Warn().Err(err).Msg("could not send notifications; retrying")
	}}
	if s.config.Mail.Host != "" {
		mailer, err := m.mail()
		if err != nil {
			return nil, err
		}
		o.Mail = mailer.Send
	}
	m.sender = delivery.NewSender(s.store, o)
	return m, nil
}

// mail creates the mailer from the mail settings.
func (m *messenger) mail() (*delivery.Mailer, error) {
	c := m.config.Mail
	o := delivery.MailOptions{Host: c.Host, Port: c.Port, TLS: c.TLS, User: c.User, From: c.From}
	if c.PasswordFile != "" {
		password, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return nil, fault.Errorf(fault.Invalid, "mail.password_file: %v", err)
		}
		o.Password = string(bytes.TrimRight(password, "\r\n"))
	}
	o.Domain, _ = os.Hostname() // otherwise another name is used
	mailer, err := delivery.NewMailer(o)
	if err != nil {
		return nil, fmt.Errorf("mail: %w", err)
	}
	return mailer, nil
}

// sendUntilDone sends notifications until ctx is done.
func (m *messenger) sendUntilDone(ctx context.Context) error {
	defer m.webhooks.Close()
	return m.sender.Run(ctx)
}

// jobLink returns the address of a job's record, or "" if no public URL is configured.
func (m *messenger) jobLink(name string) string {
	if m.config.PublicURL == "" {
		return ""
	}
	return m.config.PublicURL + "/jobs/" + url.PathEscape(name)
}

// tried counts an attempt, and logs an abandoned delivery.
func (m *messenger) tried(d *notice.Delivery) {
	kind := byWebhook
	if _, isMail := notice.Address(d.Target); isMail {
		kind = byMail
	}
	result := string(d.State)
	if d.State == notice.Pending {
		result = toRetry
	}
	m.attempts.WithLabelValues(kind, result).Inc()
	if d.State == notice.Abandoned {
		m.log.Warn().Str("organization", d.Organization).Str("job", d.Job).Str("name", d.JobName).Str("delivery", d.ID).
			Int("attempts", d.Attempts).Str("reason", d.Error).Msg("gave up delivering a notification")
	}
}
