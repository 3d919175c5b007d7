package delivery

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/wneessen/go-mail"

	"molrun/app/base/plaintext"
	"molrun/app/job/notice"
)

// Ways to encrypt connections.
const (
	StartTLS = "starttls" // required
	Implicit = "tls"      // from the first byte
	Plain    = "none"
)

// MailOptions configures the mail server and the sender address.
type MailOptions struct {
	Host           string
	Port           int
	TLS            string      // StartTLS, Implicit or Plain
	User, Password string      // "" means no authentication
	From           string      // an address, with or without a name
	Domain         string      // for message IDs and HELO; "" means the machine's name
	Config         *tls.Config // nil means the system's certificate authorities
}

// stepTimeout limits each of the two steps of an attempt: connecting to the server, and
// sending.
const stepTimeout = 15 * time.Second

// quitTimeout limits the wait for the server's reply to QUIT.
const quitTimeout = time.Second

// maxReply limits how much of a mail server's reply is kept, in characters.
const maxReply = 300

// Mailer sends mail.
type Mailer struct {
	o       MailOptions
	options []mail.Option
}

// NewMailer returns a mailer. It does not connect yet.
func NewMailer(o MailOptions) (*Mailer, error) {
	s := &Mailer{o: o, options: []mail.Option{mail.WithPort(o.Port), mail.WithTimeout(stepTimeout)}}
	switch o.TLS {
	case Implicit, Plain: // the dialer encrypts, or the connection is plain
		s.options = append(s.options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		s.options = append(s.options, mail.WithTLSPolicy(mail.TLSMandatory))
	}
	s.encrypt(o.Config)
	if o.Domain != "" {
		s.options = append(s.options, mail.WithHELO(o.Domain))
	}
	if o.User != "" {
		ways := mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthSCRAMSHA1, mail.SMTPAuthCramMD5, mail.SMTPAuthPlain, mail.SMTPAuthLogin)
		s.options = append(s.options, ways, mail.WithUsername(o.User), mail.WithPassword(o.Password))
	}
	if _, err := s.message(Email{To: "somebody@example.org"}); err != nil {
		return nil, err
	}
	_, err := mail.NewClient(o.Host, s.options...)
	return s, err
}

// encrypt sets the TLS configuration, including the server name to verify.
func (s *Mailer) encrypt(config *tls.Config) {
	if s.o.Config = config.Clone(); s.o.Config == nil {
		s.o.Config = &tls.Config{}
	}
	s.o.Config.ServerName = s.o.Host
	s.options = append(s.options, mail.WithTLSConfig(s.o.Config))
}

// Send sends an e-mail once. It returns when ctx ends, even if the server hangs.
func (s *Mailer) Send(ctx context.Context, l Email) notice.Attempt {
	message, err := s.message(l)
	if err != nil {
		return notice.Attempt{Error: err.Error()}
	}
	return judge(s.deliver(ctx, message))
}

func (s *Mailer) deliver(ctx context.Context, message *mail.Msg) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // closes the connection
	client, err := mail.NewClient(s.o.Host, append(slices.Clip(s.options), mail.WithDialContextFunc(s.dialUntil(ctx)))...)
	if err != nil {
		return err
	}
	server, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return err
	}
	err = client.SendWithSMTPClient(server, message)
	// The server has already accepted or rejected the message; its reply to QUIT does not
	// matter.
	if server.UpdateDeadline(quitTimeout) == nil {
		_ = server.Quit()
	}
	return err
}

// dialUntil returns a dial function whose connections close when end is done, because the
// library does not watch a context once it is connected.
func (s *Mailer) dialUntil(end context.Context) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(end, func() { _ = c.Close() })
		if s.o.TLS != Implicit {
			return c, nil
		}
		encrypted := tls.Client(c, s.o.Config)
		return encrypted, encrypted.HandshakeContext(ctx)
	}
}

// message composes an e-mail. The library encodes characters not allowed in a header.
func (s *Mailer) message(l Email) (*mail.Msg, error) {
	m := mail.NewMsg()
	if err := m.From(s.o.From); err != nil {
		return nil, fmt.Errorf("the sender %q is not an e-mail address", s.o.From)
	}
	if err := m.To(l.To); err != nil {
		return nil, errors.New("the address of the recipient can't be used")
	}
	domain := s.o.Domain
	if domain == "" {
		domain = "molrun.invalid"
	}
	m.SetMessageIDWithValue(l.ID + "@" + domain)
	m.SetDate()
	m.Subject(l.Subject)
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetUserAgent("molrun")
	m.SetBodyString(mail.TypeTextPlain, l.Text)
	return m, nil
}

// judge returns the result of an attempt. An error has a code if it is the server's reply
// about the message; codes from 500 are permanent.
func judge(err error) notice.Attempt {
	var refused *mail.SendError
	a := notice.Attempt{Error: describeError(err)}
	if errors.As(err, &refused) {
		a.Status = refused.ErrorCode()
		a.Final = a.Status >= 500 && slices.Contains([]mail.SendErrReason{mail.ErrSMTPRcptTo, mail.ErrSMTPData, mail.ErrSMTPDataClose}, refused.Reason)
	}
	return a
}

// describeError describes an error, using the server's own message if there is one.
func describeError(err error) string {
	var refused *mail.SendError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the mail server did not respond within %s", stepTimeout)
	case errors.As(err, &refused):
		return "the mail server rejected the message: " + plaintext.OneLine([]byte(refused.Error()), maxReply)
	}
	return "the mail server can't be used: " + plaintext.OneLine([]byte(err.Error()), maxReply)
}
