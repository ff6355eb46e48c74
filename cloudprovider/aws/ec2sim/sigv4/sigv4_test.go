package sigv4_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"crypto/sha256"
	"encoding/hex"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/sigv4"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func ring() *sigv4.Ring {
	return sigv4.NewRing(
		sigv4.Key{ID: "AKIALONG", Secret: "long", ARN: "arn:aws:iam::000000000000:user/lab"},
		sigv4.Key{ID: "ASIASHORT", Secret: "short", Token: "session", Expires: now().Add(time.Hour)},
	)
}

// request is what a server gets when a client signs with the SDK's own signer and sends over HTTP.
func request(t *testing.T, method, path, body string, creds aws.Credentials, at time.Time,
	spoil func(*http.Request)) (*http.Request, []byte) {
	t.Helper()
	var got *http.Request
	var gotBody []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		gotBody, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	r, err := http.NewRequest(method, srv.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Amz-Target", "Some.Target")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(context.Background(), creds, r, hex.EncodeToString(sum[:]), "ec2", "eu-west-1",
		at); err != nil {
		t.Fatal(err)
	}
	if spoil != nil {
		spoil(r)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return got, gotBody
}

func TestCheckAcceptsWhatTheSDKSigns(t *testing.T) {
	long := aws.Credentials{AccessKeyID: "AKIALONG", SecretAccessKey: "long"}
	short := aws.Credentials{AccessKeyID: "ASIASHORT", SecretAccessKey: "short", SessionToken: "session"}
	for name, c := range map[string]struct {
		method, path, body string
		creds              aws.Credentials
	}{
		"a form":               {"POST", "/", "Action=DescribeSubnets&Version=2016-11-15", long},
		"an empty body":        {"GET", "/clusters/lab", "", long},
		"a query in any order": {"GET", "/managedresources?nextToken=b%2Bc+d&maxResults=1&x=2&x=1", "", long},
		"a path with escaped parts": {"GET", "/managedresources/arn%3Aaws%3Aeks%3Aeu-west-1%3A1%3Acluster%2Flab", "",
			long},
		"temporary credentials": {"POST", "/", "{}", short},
	} {
		t.Run(name, func(t *testing.T) {
			r, body := request(t, c.method, c.path, c.body, c.creds, now(), nil)
			who, err := sigv4.Check(r, body, ring().Lookup, now().Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if who.Key.ID != c.creds.AccessKeyID || who.Region != "eu-west-1" || who.Service != "ec2" {
				t.Errorf("got %+v", who)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	long := aws.Credentials{AccessKeyID: "AKIALONG", SecretAccessKey: "long"}
	short := aws.Credentials{AccessKeyID: "ASIASHORT", SecretAccessKey: "short", SessionToken: "session"}
	for name, c := range map[string]struct {
		creds aws.Credentials
		after time.Duration // between signing and checking
		spoil func(*http.Request)
		fault sigv4.Fault
	}{
		"no signature": {long, 0, func(r *http.Request) { r.Header.Del("Authorization") }, sigv4.NoSignature},
		"another scheme": {long, 0, func(r *http.Request) {
			r.Header.Set("Authorization", "Basic eDp5")
		}, sigv4.Malformed},
		"a short scope":    {long, 0, replaceAuth("/aws4_request", ""), sigv4.Malformed},
		"no signed header": {long, 0, replaceAuth("SignedHeaders", "Headers"), sigv4.Malformed},
		"a stranger":       {aws.Credentials{AccessKeyID: "AKIAWHO", SecretAccessKey: "x"}, 0, nil, sigv4.UnknownKey},
		"a wrong secret": {aws.Credentials{AccessKeyID: "AKIALONG", SecretAccessKey: "x"}, 0, nil,
			sigv4.WrongSignature},
		"another query": {long, 0, func(r *http.Request) { r.URL.RawQuery = "a=1" }, sigv4.WrongSignature},
		"a changed header": {long, 0, func(r *http.Request) {
			r.Header.Set("X-Amz-Target", "Other.Target")
		}, sigv4.WrongSignature},
		"an added header": {long, 0, func(r *http.Request) { r.Header.Set("X-Amz-More", "1") }, sigv4.WrongSignature},
		"another day":     {long, 0, replaceAuth("/20260301/", "/20260302/"), sigv4.WrongSignature},
		"a wrong token": {aws.Credentials{AccessKeyID: "ASIASHORT", SecretAccessKey: "short", SessionToken: "other"},
			0, nil, sigv4.UnknownKey},
		"no token": {aws.Credentials{AccessKeyID: "ASIASHORT", SecretAccessKey: "short"}, 0, nil,
			sigv4.UnknownKey},
		"a late request":   {long, 6 * time.Minute, nil, sigv4.Skewed},
		"an early request": {long, -6 * time.Minute, nil, sigv4.Skewed},
	} {
		t.Run(name, func(t *testing.T) {
			r, body := request(t, "POST", "/", "Action=X", c.creds, now(), c.spoil)
			_, err := sigv4.Check(r, body, ring().Lookup, now().Add(c.after))
			wantFault(t, err, c.fault)
		})
	}
	t.Run("another body", func(t *testing.T) {
		r, _ := request(t, "POST", "/", "Action=X", long, now(), nil)
		_, err := sigv4.Check(r, []byte("Action=Y"), ring().Lookup, now())
		wantFault(t, err, sigv4.WrongSignature)
	})
	t.Run("an expired token", func(t *testing.T) {
		keys := ring()
		if n := keys.ExpireAll(now()); n != 1 {
			t.Errorf("%d keys expire, want the temporary one", n)
		}
		r, body := request(t, "POST", "/", "Action=X", short, now(), nil)
		_, err := sigv4.Check(r, body, keys.Lookup, now())
		wantFault(t, err, sigv4.ExpiredToken)
	})
}

func replaceAuth(old, new string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, new, 1))
	}
}

func wantFault(t *testing.T, err error, want sigv4.Fault) {
	t.Helper()
	var refused *sigv4.Error
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if refused.Fault != want {
		t.Errorf("got fault %d (%s), want %d", refused.Fault, refused.Message, want)
	}
}

func TestEveryServiceHasItsOwnWords(t *testing.T) {
	for _, c := range []struct {
		service string
		fault   sigv4.Fault
		status  int
		code    string
	}{
		{"ec2", sigv4.UnknownKey, 401, "AuthFailure"},
		{"ec2", sigv4.WrongSignature, 401, "AuthFailure"},
		{"ec2", sigv4.ExpiredToken, 400, "RequestExpired"},
		{"iam", sigv4.UnknownKey, 403, "InvalidClientTokenId"},
		{"sts", sigv4.WrongSignature, 403, "SignatureDoesNotMatch"},
		{"sts", sigv4.ExpiredToken, 403, "ExpiredToken"},
		{"sqs", sigv4.ExpiredToken, 403, "ExpiredToken"},
		{"ssm", sigv4.UnknownKey, 400, "UnrecognizedClientException"},
		{"pricing", sigv4.WrongSignature, 400, "InvalidSignatureException"},
		{"eks", sigv4.ExpiredToken, 403, "ExpiredTokenException"},
		{"arc-zonal-shift", sigv4.NoSignature, 403, "MissingAuthenticationTokenException"},
	} {
		status, code, message := (&sigv4.Error{Fault: c.fault, Message: "why"}).For(c.service)
		if status != c.status || code != c.code || message == "" {
			t.Errorf("%s words fault %d as %d %s %q, want %d %s", c.service, c.fault, status, code, message,
				c.status, c.code)
		}
	}
}
