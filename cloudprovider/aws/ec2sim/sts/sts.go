// Package sts is the part of the simulated cloud that says who a caller is and gives out temporary credentials.
package sts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sigv4"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Options are what a service is made of.
type Options struct {
	Clock   wire.Clock
	Account string
	// Keys is where known keys are, and where temporary ones are put.
	Keys *sigv4.Ring
	// Role says whether a role exists, by its ARN. Nil: every role does.
	Role func(arn string) bool
}

// Service gives out credentials. It is a wire.Service.
type Service struct {
	protocol.Query
	opts   Options
	issued atomic.Int64
}

// New makes the service.
func New(opts Options) *Service {
	s := &Service{opts: opts}
	s.Query = protocol.Query{Service: "sts", Namespace: "https://sts.amazonaws.com/doc/2011-06-15/",
		Ops: map[string]protocol.FormOp{
			"GetCallerIdentity":         s.whoAmI,
			"AssumeRole":                s.assume,
			"AssumeRoleWithWebIdentity": s.assumeWithToken,
		}}
	return s
}

// NeedsSignature says whether an action must be signed: not when a web identity stands for the caller.
func NeedsSignature(action string) bool { return action != "AssumeRoleWithWebIdentity" }

type identityOut struct {
	ARN     string `xml:"Arn"`
	UserID  string `xml:"UserId"`
	Account string
}

func (s *Service) whoAmI(c *wire.Call, _ url.Values) (any, *wire.Error) {
	key, _ := s.opts.Keys.Lookup(c.AccessKey)
	return identityOut{ARN: key.ARN, UserID: c.AccessKey, Account: s.opts.Account}, nil
}

type credentialsOut struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      string
}

type assumedOut struct {
	Credentials     credentialsOut
	AssumedRoleUser struct {
		AssumedRoleID string `xml:"AssumedRoleId"`
		ARN           string `xml:"Arn"`
	}
	SubjectFromWebIdentityToken string `xml:",omitempty"`
	Audience                    string `xml:",omitempty"`
}

func (s *Service) assume(c *wire.Call, form url.Values) (any, *wire.Error) {
	return s.issue(c, form)
}

func (s *Service) assumeWithToken(c *wire.Call, form url.Values) (any, *wire.Error) {
	claims, err := s.readToken(form.Get("WebIdentityToken"))
	if err != nil {
		return nil, err
	}
	out, err := s.issue(c, form)
	if err != nil {
		return nil, err
	}
	out.SubjectFromWebIdentityToken = claims.Subject
	out.Audience = "sts.amazonaws.com"
	return out, nil
}

type claims struct {
	Subject string `json:"sub"`
	Expires int64  `json:"exp"`
}

// readToken reads a service account's token. Its signature is not checked: the simulator does not know the cluster's
// keys.
func (s *Service) readToken(token string) (claims, *wire.Error) {
	parts := strings.Split(token, ".")
	var read claims
	var err error
	if len(parts) == 3 {
		var body []byte
		if body, err = base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			err = json.Unmarshal(body, &read)
		}
	}
	if len(parts) != 3 || err != nil {
		return claims{}, wire.Errorf("InvalidIdentityToken", "The ID Token provided is not a valid JWT. (You may see "+
			"this error if you sent an Access Token)")
	}
	if now := s.opts.Clock.Now(); read.Expires != 0 && !now.Before(time.Unix(read.Expires, 0)) {
		return claims{}, wire.Errorf("ExpiredTokenException", "Token expired: current date/time %d must be before "+
			"the expiration date/time %d", now.Unix(), read.Expires)
	}
	return read, nil
}

// issue gives temporary credentials of a role.
func (s *Service) issue(c *wire.Call, form url.Values) (*assumedOut, *wire.Error) {
	role, session := form.Get("RoleArn"), form.Get("RoleSessionName")
	if role == "" || session == "" {
		return nil, wire.Errorf("ValidationError", "RoleArn and RoleSessionName must be given")
	}
	life, err := lifetime(form.Get("DurationSeconds"))
	if err != nil {
		return nil, err
	}
	if s.opts.Role != nil && !s.opts.Role(role) {
		return nil, &wire.Error{Code: "AccessDenied", Status: http.StatusForbidden, Message: "Not authorized to " +
			"perform sts:" + c.Action}
	}
	n := s.issued.Add(1)
	name := role[strings.LastIndexByte(role, '/')+1:]
	key := sigv4.Key{
		ID: fmt.Sprintf("ASIASIM%013d", n), Secret: fmt.Sprintf("secret-%d", n), Token: fmt.Sprintf("token-%d", n),
		Expires: s.opts.Clock.Now().Add(life),
		ARN:     fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/%s", s.opts.Account, name, session),
	}
	s.opts.Keys.Put(key)
	out := &assumedOut{Credentials: credentialsOut{
		AccessKeyID: key.ID, SecretAccessKey: key.Secret, SessionToken: key.Token,
		Expiration: key.Expires.UTC().Format(time.RFC3339),
	}}
	out.AssumedRoleUser.AssumedRoleID = "AROA" + strings.ToUpper(name) + ":" + session
	out.AssumedRoleUser.ARN = key.ARN
	return out, nil
}

// lifetime reads DurationSeconds: 15 minutes to 12 hours, an hour if nothing is said.
func lifetime(text string) (time.Duration, *wire.Error) {
	if text == "" {
		return time.Hour, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 900 || n > 43200 {
		return 0, wire.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'durationSeconds' "+
			"failed to satisfy constraint: Member must have value between 900 and 43200", text)
	}
	return time.Duration(n) * time.Second, nil
}
