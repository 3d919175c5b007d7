package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"
)

// conn is an HTTP/1.1 client with one connection. It shares the CPUs with the server that
// it measures, so it does as little as possible: it writes prebuilt requests and parses
// only the status and length of a response.
type conn struct {
	net    net.Conn
	reader *bufio.Reader
	body   []byte // body of the last response returned by do
	sink   []byte // buffer for discarded bodies
}

// patience is the timeout of every exchange.
const patience = 10 * time.Minute

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	return &conn{net: c, reader: bufio.NewReaderSize(c, 64<<10)}, nil
}

func (c *conn) close() { _ = c.net.Close() }

// requestHead returns the head of a request. Each line in header must end with \r\n.
func requestHead(method, path, header string, length int64) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: bench\r\n%sContent-Length: %d\r\n\r\n", method, path, header, length)
}

// do sends a request and returns the body of the response, which is valid until
// the next call.
func (c *conn) do(request []byte) ([]byte, error) {
	length, err := c.begin(request)
	if err != nil {
		return nil, err
	}
	if cap(c.body) < length {
		c.body = make([]byte, length, 2*length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.reader, c.body)
	return c.body, err
}

// discard sends a request, reads and discards the body of the response, and returns its
// length.
func (c *conn) discard(request []byte) (length int, err error) {
	if length, err = c.begin(request); err != nil {
		return length, err
	}
	buffered, err := c.reader.Discard(min(length, c.reader.Buffered()))
	if c.sink == nil {
		c.sink = make([]byte, 1<<20)
	}
	for left := length - buffered; left > 0 && err == nil; {
		var n int
		n, err = c.net.Read(c.sink[:min(left, len(c.sink))])
		left -= n
	}
	return length, err
}

// send sends a request whose body is a file. The kernel copies it to the network.
func (c *conn) send(head []byte, body *os.File) error {
	if err := c.net.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.net.Write(head); err != nil {
		return err
	}
	if _, err := io.Copy(c.net, body); err != nil {
		return err
	}
	length, err := c.readHead()
	if err == nil {
		_, err = c.reader.Discard(length)
	}
	return err
}

// begin sends a request and reads the head of the response.
func (c *conn) begin(request []byte) (length int, err error) {
	if err := c.net.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := c.net.Write(request); err != nil {
		return 0, err
	}
	return c.readHead()
}

var contentLength = []byte("content-length:")

// readHead reads the head of a response and returns the length of its body.
func (c *conn) readHead() (length int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("the response begins with %q", line)
	}
	code := string(line[9:12])
	length = -1
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if len(line) > len(contentLength) && bytes.EqualFold(line[:len(contentLength)], contentLength) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil {
				return 0, err
			}
		}
	}
	switch {
	case code[0] != '2':
		text, _ := io.ReadAll(io.LimitReader(c.reader, int64(min(max(length, 0), 1000))))
		return 0, fmt.Errorf("status %s: %s", code, text)
	case length < 0 && code != "204" && code != "201":
		return 0, errors.New("the response has no Content-Length")
	}
	return max(length, 0), nil
}
