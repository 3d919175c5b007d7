package delivery_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	netmail "net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"molrun/app/job/delivery"
	"molrun/app/job/notice"
	"molrun/app/test/must"
)

// program is an SMTP server based on Debian's python3-aiosmtpd. It stores each message as
// a file in the given folder. The given replies replace its own; in place of an empty
// reply, it sends nothing.
const program = `
import asyncio, json, ssl, sys
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Mailbox
from aiosmtpd.smtp import AuthResult

o = json.loads(sys.argv[1])

class Handler(Mailbox):
    async def reply(self, step):
        if o["replies"].get(step) == "":
            print("waits", flush=True)
            await asyncio.sleep(3600)
        return o["replies"].get(step)
    async def handle_MAIL(self, server, session, envelope, address, options):
        if r := await self.reply("MAIL"):
            return r
        envelope.mail_from = address
        return "250 OK"
    async def handle_RCPT(self, server, session, envelope, address, options):
        if r := await self.reply("RCPT"):
            return r
        envelope.rcpt_tos.append(address)
        return "250 OK"
    async def handle_DATA(self, server, session, envelope):
        if r := await self.reply("DATA"):
            return r
        return await super().handle_DATA(server, session, envelope)
    async def handle_QUIT(self, server, session, envelope):
        return await self.reply("QUIT") or "221 Bye"

def login(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"molrun", b"right"), handled=False)

kind = {"hostname": "127.0.0.1", "port": o["port"]}
if o["certificate"]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(o["certificate"], o["key"])
    kind |= {"tls_context": context, "require_starttls": True}
if o["login"]:
    kind |= {"authenticator": login, "auth_required": True, "auth_require_tls": not o["inTunnel"]}
c = Controller(Handler(o["box"]), **kind)
c.start()
print("ready", flush=True)
sys.stdin.read()
c.stop()
`

// serverOptions configures a mail server.
type serverOptions struct {
	Port        int               `json:"port"`
	Box         string            `json:"box"`
	Certificate string            `json:"certificate"` // files; "" means unencrypted
	Key         string            `json:"key"`
	Login       bool              `json:"login"`    // user molrun, password right
	InTunnel    bool              `json:"inTunnel"` // behind a TLS tunnel
	Replies     map[string]string `json:"replies"`  // by step: MAIL, RCPT, DATA, QUIT
}

// python returns a Python interpreter that has aiosmtpd. This can be the system's rather
// than the first one in the path.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import aiosmtpd").Run() == nil {
			return name
		}
	}
	must.Skip(t, "python3-aiosmtpd is not installed")
	return ""
}

// mailServer starts a real mail server. It returns its port, its mailbox and a channel
// that receives when the server waits.
func mailServer(t *testing.T, o serverOptions) (port int, box string, waits <-chan struct{}) {
	t.Helper()
	name := python(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	o.Port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	o.Box = filepath.Join(t.TempDir(), "box")
	if o.Replies == nil {
		o.Replies = map[string]string{}
	}
	text, err := json.Marshal(o)
	must.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, name, "-c", program, string(text))
	in, err := server.StdinPipe()
	must.OK(t, err)
	out, err := server.StdoutPipe()
	must.OK(t, err)
	must.OK(t, server.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the mail server says %q, %v", lines.Text(), lines.Err())
	}
	waiting, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			waiting <- struct{}{}
		}
	}()
	t.Cleanup(func() { _ = in.Close(); cancel(); <-ended; _ = server.Wait() })
	return o.Port, o.Box, waiting
}

func received(t *testing.T, box string) (all []*netmail.Message) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(box, "new", "*"))
	must.OK(t, err)
	for _, file := range files {
		f, err := os.Open(file)
		must.OK(t, err)
		t.Cleanup(func() { _ = f.Close() })
		m, err := netmail.ReadMessage(f)
		must.OK(t, err)
		all = append(all, m)
	}
	return all
}

func TestMailArrivesAtARealServer(t *testing.T) {
	port, box, _ := mailServer(t, serverOptions{})
	s := mailer(t, port, delivery.MailOptions{TLS: delivery.Plain, From: "molrun <molrun@lab.example>", Domain: "lab.example"})
	l := delivery.Email{
		ID: "01K9ZXV4QY0000000000000000", To: "ann@lab.example",
		Subject: "Job \"evil\r\nBcc: eve@evil.example\" is FAILED", Text: "It failed.\n.\nμ at 300 K\n",
	}
	if a := s.Send(t.Context(), l); a.Error != "" {
		t.Fatal(a.Error)
	}
	all := received(t, box)
	if len(all) != 1 {
		t.Fatalf("%d messages arrived", len(all))
	}
	h := all[0].Header
	if h.Get("To") != "<ann@lab.example>" || h.Get("From") != `"molrun" <molrun@lab.example>` || h.Get("Bcc") != "" || h.Get("X-RcptTo") != "ann@lab.example" ||
		h.Get("Message-ID") != "<01K9ZXV4QY0000000000000000@lab.example>" || h.Get("Auto-Submitted") != "auto-generated" {
		t.Errorf("header %v", h)
	}
	if at, err := h.Date(); err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("date %v, %v", at, err)
	}
	body, _ := io.ReadAll(all[0].Body)
	if !strings.Contains(string(body), "It failed.") {
		t.Errorf("body %s", body)
	}
}

func TestMailServerThatCannotBeUsedIsAnError(t *testing.T) {
	port, _, _ := mailServer(t, serverOptions{})
	for name, s := range map[string]*delivery.Mailer{
		"without encryption": mailer(t, port, delivery.MailOptions{TLS: delivery.StartTLS}),
		"not there":          mailer(t, 1, delivery.MailOptions{TLS: delivery.Plain}),
		"without passwords":  mailer(t, port, delivery.MailOptions{TLS: delivery.Plain, User: "u", Password: "p"}),
	} {
		if a := s.Send(t.Context(), someLetter()); !strings.HasPrefix(a.Error, "the mail server ") || strings.Contains(a.Error, "\n") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if _, err := delivery.NewMailer(delivery.MailOptions{Host: "127.0.0.1", Port: port, From: "nobody"}); err == nil {
		t.Error("an invalid sender address is accepted")
	}
	if a := plainly(t, port).Send(t.Context(), delivery.Email{ID: "1", To: "ann@lab.example\r\nRCPT TO:<eve@evil.example>"}); a.Error == "" {
		t.Error("an address of two lines is accepted")
	}
}

// mailer returns a mailer for a local server.
func mailer(t *testing.T, port int, o delivery.MailOptions) *delivery.Mailer {
	t.Helper()
	o.Host, o.Port, o.From = "127.0.0.1", port, cmp.Or(o.From, "molrun@lab.example")
	s, err := delivery.NewMailer(o)
	must.OK(t, err)
	return s
}

// plainly returns a mailer for an unencrypted server.
func plainly(t *testing.T, port int) *delivery.Mailer {
	t.Helper()
	return mailer(t, port, delivery.MailOptions{TLS: delivery.Plain})
}

func someLetter() delivery.Email {
	return delivery.Email{ID: "1", To: "ann@lab.example", Subject: "s", Text: "t"}
}

// A reply about one message does not count as a failure of the server, and a permanent
// rejection is not retried. An error about the sender is retried because the operator
// might fix it.
func TestRefusalsHaveTheirCodes(t *testing.T) {
	for _, tt := range []struct {
		step, reply string
		want        notice.Attempt
	}{
		{"RCPT", "550 5.1.1 no such user", notice.Attempt{Status: 550, Final: true}},
		{"RCPT", "451 4.7.1 greylisted", notice.Attempt{Status: 451}},
		{"DATA", "554 5.6.0 refused", notice.Attempt{Status: 554, Final: true}},
		{"DATA", "500 5.5.2 what is this", notice.Attempt{Status: 500, Final: true}},
		{"DATA", "452 4.3.1 mailbox is full", notice.Attempt{Status: 452}},
		{"MAIL", "550 5.7.1 who are you", notice.Attempt{Status: 550}},
	} {
		t.Run(tt.step+" "+tt.reply, func(t *testing.T) {
			port, box, _ := mailServer(t, serverOptions{Replies: map[string]string{tt.step: tt.reply}})
			got := plainly(t, port).Send(t.Context(), someLetter())
			_, text, _ := strings.Cut(tt.reply, " ")
			if !strings.HasPrefix(got.Error, "the mail server rejected the message: ") || !strings.Contains(got.Error, text) {
				t.Errorf("error %q", got.Error)
			}
			got.Error = ""
			must.Equal(t, "attempt", got, tt.want)
			must.Equal(t, "messages arrived", len(received(t, box)), 0)
		})
	}
}

// An accepted message counts as sent, even if the server never replies to QUIT.
func TestGoodbyeChangesNothing(t *testing.T) {
	for _, reply := range []string{"", "421 shutting down"} {
		port, box, _ := mailServer(t, serverOptions{Replies: map[string]string{"QUIT": reply}})
		if a := plainly(t, port).Send(t.Context(), someLetter()); a != (notice.Attempt{}) || len(received(t, box)) != 1 {
			t.Errorf("the server answers QUIT with %q: %+v, %d messages arrived", reply, a, len(received(t, box)))
		}
	}
}

// An attempt ends with its context at every step, not only after its own time limit.
func TestAttemptEndsWithItsContext(t *testing.T) {
	for _, step := range []string{"MAIL", "RCPT", "DATA"} {
		t.Run(step, func(t *testing.T) {
			port, _, waits := mailServer(t, serverOptions{Replies: map[string]string{step: ""}})
			endsWhenCut(t, plainly(t, port), waits)
		})
	}
	for name, o := range map[string]delivery.MailOptions{"greeting": {TLS: delivery.Plain}, "TLS": {TLS: delivery.Implicit}} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			must.OK(t, err)
			waits, ended := make(chan struct{}, 1), make(chan struct{})
			go func() {
				defer close(ended)
				c, err := l.Accept()
				if err != nil {
					return
				}
				waits <- struct{}{}
				_, _ = io.Copy(io.Discard, c) // until the client closes
				_ = c.Close()
			}()
			t.Cleanup(func() { _ = l.Close(); <-ended })
			endsWhenCut(t, mailer(t, l.Addr().(*net.TCPAddr).Port, o), waits)
		})
	}
}

// endsWhenCut cancels an attempt while the server waits. The error shows that the attempt
// did not wait for its own time limit.
func endsWhenCut(t *testing.T, s *delivery.Mailer, waits <-chan struct{}) {
	t.Helper()
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	done := make(chan notice.Attempt, 1)
	go func() { done <- s.Send(ctx, someLetter()) }()
	select {
	case <-waits:
	case a := <-done:
		t.Fatalf("it ended early: %+v", a)
	}
	cut()
	if a := <-done; a.Error == "" || strings.Contains(a.Error, "within") {
		t.Errorf("%+v", a)
	}
}

// certificate returns a certificate for 127.0.0.1, its files and a configuration that
// trusts it.
func certificate(t *testing.T) (pair tls.Certificate, cert, key string, trust *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	pair = s.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must.OK(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		must.Write(t, name, string(pem.EncodeToMemory(b)))
	}
	return pair, cert, key, &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
}

func TestEncryptionAndPasswords(t *testing.T) {
	_, cert, key, trust := certificate(t)
	port, box, _ := mailServer(t, serverOptions{Certificate: cert, Key: key, Login: true})
	for _, tt := range []struct {
		name   string
		change func(*delivery.MailOptions)
		want   string // part of the error; "" if delivered
	}{
		{"all is right", func(*delivery.MailOptions) {}, ""},
		{"wrong password", func(o *delivery.MailOptions) { o.Password = "wrong" }, "535"},
		{"no password", func(o *delivery.MailOptions) { o.User, o.Password = "", "" }, "530"},
		{"certificate that is not trusted", func(o *delivery.MailOptions) { o.Config = nil }, "certificate"},
		{"unencrypted", func(o *delivery.MailOptions) { o.TLS, o.User, o.Password = delivery.Plain, "", "" }, "STARTTLS"},
	} {
		before := len(received(t, box))
		o := delivery.MailOptions{TLS: delivery.StartTLS, User: "molrun", Password: "right", Config: trust}
		tt.change(&o)
		a := mailer(t, port, o).Send(t.Context(), someLetter())
		arrived := len(received(t, box)) - before
		if a.Final || (a.Error == "") != (tt.want == "") || !strings.Contains(a.Error, tt.want) || (arrived == 1) != (tt.want == "") {
			t.Errorf("%s: %+v, %d arrived", tt.name, a, arrived)
		}
	}
}

// With tls = "tls", everything is encrypted from the first byte, so passwords can be
// sent.
func TestImplicitEncryption(t *testing.T) {
	port, box, _ := mailServer(t, serverOptions{Login: true, InTunnel: true})
	pair, _, _, trust := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	must.OK(t, err)
	ended := make(chan struct{})
	go func() { defer close(ended); tunnel(l, fmt.Sprint("127.0.0.1:", port)) }()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	through := l.Addr().(*net.TCPAddr).Port
	o := delivery.MailOptions{TLS: delivery.Implicit, User: "molrun", Password: "right", Config: trust}
	if a := mailer(t, through, o).Send(t.Context(), someLetter()); a != (notice.Attempt{}) || len(received(t, box)) != 1 {
		t.Errorf("%+v, %d messages arrived", a, len(received(t, box)))
	}
	o.Config = nil
	if a := mailer(t, through, o).Send(t.Context(), someLetter()); !strings.Contains(a.Error, "certificate") {
		t.Errorf("a certificate that is not trusted: %+v", a)
	}
}

// tunnel accepts connections and forwards their data.
func tunnel(l net.Listener, to string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if server, err := net.Dial("tcp", to); err == nil {
			done := make(chan struct{})
			go func() { defer close(done); _, _ = io.Copy(c, server); _ = c.Close() }()
			_, _ = io.Copy(server, c)
			_ = server.Close()
			<-done
		}
		_ = c.Close()
	}
}
