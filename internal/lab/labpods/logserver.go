package labpods

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// logServer answers the API server's question what a container has printed, and nobody else's: the answer wants a
// certificate of the lab's authority.
type logServer struct {
	server *http.Server
	port   int32
}

func serveLogs(r *Runner) (*logServer, error) {
	config := rest.CopyConfig(r.o.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the lab's certificates: %w", err)
	}
	callers := x509.NewCertPool()
	if !callers.AppendCertsFromPEM(config.CAData) {
		return nil, errors.New("the lab's kubeconfig has no certificate authority")
	}
	own, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("making a certificate for the log server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for questions about logs: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", r.answerLogs)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs: callers, MinVersion: tls.VersionTLS12}}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	return &logServer{server: server, port: int32(listener.Addr().(*net.TCPAddr).Port)}, nil
}

func (s *logServer) close() { _ = s.server.Close() }

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tenon-lab-logs"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
}

// answerLogs writes the log of a container in the way that kubectl asks for.
func (r *Runner) answerLogs(w http.ResponseWriter, request *http.Request) {
	p, c := r.find(request.PathValue("namespace"), request.PathValue("pod"), request.PathValue("container"))
	if c == nil {
		http.Error(w, "no such container runs on this node", http.StatusNotFound)
		return
	}
	if !c.executes {
		return // a simulated container prints nothing
	}
	query := request.URL.Query()
	path := c.logPath()
	if query.Get("previous") == "true" {
		path = previous(path)
	}
	file, err := os.Open(path)
	if err != nil {
		http.Error(w, "there is no such log: "+err.Error(), http.StatusBadRequest)
		return
	}
	defer func() { _ = file.Close() }()
	sent := &sender{w: w, times: query.Get("timestamps") == "true", since: since(query),
		limit: number(query, "limitBytes", -1)}
	if err := sent.tail(file, number(query, "tailLines", -1)); err != nil || query.Get("follow") != "true" {
		return
	}
	for {
		select {
		case <-request.Context().Done():
			return
		case <-p.done:
			_ = sent.rest(file)
			return
		case <-time.After(followEvery):
			if replaced(file, path) {
				return // the process has been started again; kubectl asks anew if it is told to
			}
			if err := sent.rest(file); err != nil {
				return
			}
		}
	}
}

// followEvery is how often is looked for more.
const followEvery = 100 * time.Millisecond

func replaced(file *os.File, path string) bool {
	was, err := file.Stat()
	if err != nil {
		return true
	}
	is, err := os.Stat(path)
	return err == nil && !os.SameFile(was, is)
}

func (r *Runner) find(namespace, name, of string) (*pod, *container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.pods {
		if p.object.Namespace != namespace || p.object.Name != name {
			continue
		}
		for _, c := range p.containers {
			if c.spec.Name == of {
				return p, c
			}
		}
	}
	return nil, nil
}

func number(query url.Values, name string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(query.Get(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

func since(query url.Values) time.Time {
	if s := number(query, "sinceSeconds", 0); s > 0 {
		return time.Now().Add(-time.Duration(s) * time.Second)
	}
	at, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	return at
}

// sender writes lines of a log to whoever asked.
type sender struct {
	w     http.ResponseWriter
	times bool
	since time.Time
	limit int64
	part  string // of a line whose end has not been written yet
}

// tail sends the last lines, or all if last is negative.
func (s *sender) tail(file io.Reader, last int64) error {
	lines, err := s.read(file)
	if err != nil {
		return err
	}
	if last >= 0 && int64(len(lines)) > last {
		lines = lines[int64(len(lines))-last:]
	}
	return s.send(lines)
}

// rest sends what has come since.
func (s *sender) rest(file io.Reader) error {
	lines, err := s.read(file)
	if err != nil {
		return err
	}
	return s.send(lines)
}

func (s *sender) read(file io.Reader) ([]string, error) {
	var out []string
	reader := bufio.NewReader(file)
	for {
		text, err := reader.ReadString('\n')
		s.part += text
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		at, line, _ := strings.Cut(s.part, " ")
		if when, err := time.Parse(time.RFC3339Nano, at); err == nil && when.Before(s.since) {
			line = ""
		} else if s.times {
			line = s.part
		}
		if s.part = ""; line != "" {
			out = append(out, line)
		}
	}
}

func (s *sender) send(lines []string) error {
	for _, line := range lines {
		if s.limit >= 0 && int64(len(line)) > s.limit {
			line = line[:s.limit]
		}
		if _, err := io.WriteString(s.w, line); err != nil {
			return err
		}
		if s.limit >= 0 {
			s.limit -= int64(len(line))
		}
	}
	if flush, ok := s.w.(http.Flusher); ok {
		flush.Flush()
	}
	return nil
}
