// Package sigv4 checks the signatures of requests as Amazon's services do (Signature Version 4 in the Authorization
// header). It is pure: a request, its body, the known keys and the time go in, who signed comes out. It belongs to the
// EC2 simulator and stands beside the floors.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	terminal  = "aws4_request"
	stamp     = "20060102T150405Z"
	day       = "20060102"
	// skew is how far the clock of a caller may be off.
	skew = 5 * time.Minute
)

// Signer is who signed a request, and for what.
type Signer struct {
	Key     Key
	Region  string
	Service string
}

// scope is the credential of an Authorization header: whose key, and what it was made good for.
type scope struct {
	key, date, region, service string
}

func (s scope) String() string { return s.date + "/" + s.region + "/" + s.service + "/" + terminal }

// authorization is the header, taken apart.
type authorization struct {
	scope     scope
	headers   []string
	signature string
}

// Check verifies the request's signature with the keys that lookup knows. Every error is an *Error.
func Check(r *http.Request, body []byte, lookup func(id string) (Key, bool), now time.Time) (Signer, error) {
	auth, err := parse(r.Header.Get("Authorization"))
	if err != nil {
		return Signer{}, err
	}
	signed := Signer{Region: auth.scope.region, Service: auth.scope.service}
	key, known := lookup(auth.scope.key)
	if !known {
		return signed, refuse(UnknownKey, "The security token included in the request is invalid.")
	}
	if err := fresh(r, auth.scope, now); err != nil {
		return signed, err
	}
	if err := checkToken(r, key, now); err != nil {
		return signed, err
	}
	if err := checkHeaders(r, auth); err != nil {
		return signed, err
	}
	if !hmac.Equal([]byte(sign(r, body, auth, key.Secret)), []byte(auth.signature)) {
		return signed, refuse(WrongSignature, "The request signature we calculated does not match the signature you "+
			"provided. "+
			"Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	signed.Key = key
	return signed, nil
}

// Scope reads region and service from the Authorization header without checking anything, for a router that has to know
// in whose language to answer; both are empty if the request is not signed.
func Scope(r *http.Request) (region, service string) {
	auth, err := parse(r.Header.Get("Authorization"))
	if err != nil {
		return "", ""
	}
	return auth.scope.region, auth.scope.service
}

// parse takes an Authorization header apart.
func parse(header string) (authorization, error) {
	if header == "" {
		return authorization{}, refuse(NoSignature, "Request is missing Authentication Token")
	}
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return authorization{}, refuse(Malformed, "Authorization header requires existence of the algorithm "+algorithm)
	}
	parts := map[string]string{}
	for field := range strings.SplitSeq(rest, ",") {
		name, value, found := strings.Cut(strings.TrimSpace(field), "=")
		if found {
			parts[name] = value
		}
	}
	for _, name := range []string{"Credential", "SignedHeaders", "Signature"} {
		if parts[name] == "" {
			return authorization{}, refuse(Malformed, "Authorization header requires '"+name+"' parameter.")
		}
	}
	cred := strings.Split(parts["Credential"], "/")
	if len(cred) != 5 || cred[4] != terminal {
		return authorization{}, refuse(Malformed, "Credential must have exactly 5 slash-delimited elements, "+
			"e.g. keyid/date/region/service/"+terminal+", got '"+parts["Credential"]+"'")
	}
	return authorization{
		scope:     scope{key: cred[0], date: cred[1], region: cred[2], service: cred[3]},
		headers:   strings.Split(parts["SignedHeaders"], ";"),
		signature: parts["Signature"],
	}, nil
}

// fresh refuses requests that were signed too long ago, in the future, or for another day.
func fresh(r *http.Request, s scope, now time.Time) error {
	at, err := time.Parse(stamp, r.Header.Get("X-Amz-Date"))
	if err != nil {
		return refuse(Malformed, "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.")
	}
	if at.Format(day) != s.date {
		return refuse(WrongSignature, fmt.Sprintf("Date in Credential scope does not match YYYYMMDD from ISO-8601 "+
			"version of date from HTTP: '%s' != '%s'",
			s.date, at.Format(day)))
	}
	now = now.UTC()
	if at.Before(now.Add(-skew)) {
		return refuse(Skewed, fmt.Sprintf("Signature expired: %s is now earlier than %s (%s - 5 min.)",
			at.Format(stamp), now.Add(-skew).Format(stamp), now.Format(stamp)))
	}
	if at.After(now.Add(skew)) {
		return refuse(Skewed, fmt.Sprintf("Signature not yet current: %s is still later than %s (%s + 5 min.)",
			at.Format(stamp), now.Add(skew).Format(stamp), now.Format(stamp)))
	}
	return nil
}

// checkToken compares the session token of temporary credentials, and their age.
func checkToken(r *http.Request, key Key, now time.Time) error {
	if r.Header.Get("X-Amz-Security-Token") != key.Token {
		return refuse(UnknownKey, "The security token included in the request is invalid.")
	}
	if !key.Expires.IsZero() && !now.Before(key.Expires) {
		return refuse(ExpiredToken, "The security token included in the request is expired")
	}
	return nil
}

// checkHeaders insists that the headers that give a request its meaning are among the signed ones.
func checkHeaders(r *http.Request, auth authorization) error {
	must := []string{"host"}
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") {
			must = append(must, lower)
		}
	}
	slices.Sort(must)
	for _, name := range must {
		if !slices.Contains(auth.headers, name) {
			return refuse(WrongSignature, "'"+name+"' must be a 'SignedHeader' in the AWS Authorization.")
		}
	}
	return nil
}

// sign is the signature that the request must have.
func sign(r *http.Request, body []byte, auth authorization, secret string) string {
	canonical := strings.Join([]string{
		r.Method,
		escapePath(r.URL.EscapedPath()),
		canonicalQuery(r.URL.Query()),
		canonicalHeaders(r, auth.headers),
		strings.Join(auth.headers, ";"),
		digest(body),
	}, "\n")
	text := strings.Join([]string{algorithm, r.Header.Get("X-Amz-Date"), auth.scope.String(),
		digest([]byte(canonical))}, "\n")
	key := []byte("AWS4" + secret)
	for _, part := range []string{auth.scope.date, auth.scope.region, auth.scope.service, terminal} {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalHeaders writes the signed headers, one a line. Go's server keeps two of them outside the header map.
func canonicalHeaders(r *http.Request, names []string) string {
	var b strings.Builder
	for _, name := range names {
		values := slices.Clone(r.Header.Values(name))
		switch name {
		case "host":
			values = []string{r.Host}
		case "content-length":
			values = []string{fmt.Sprint(r.ContentLength)}
		}
		for i, v := range values {
			values[i] = strings.Join(strings.Fields(v), " ")
		}
		b.WriteString(name + ":" + strings.Join(values, ",") + "\n")
	}
	return b.String()
}

// canonicalQuery writes the query with its names and values sorted and escaped.
func canonicalQuery(query url.Values) string {
	var parts []string
	for name, values := range query {
		for _, v := range values {
			parts = append(parts, escape(name)+"="+escape(v))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

// escapePath escapes an already escaped path once more, as every service but S3 wants it.
func escapePath(path string) string {
	if path == "" {
		return "/"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = escape(s)
	}
	return strings.Join(segments, "/")
}

// escape writes everything but the unreserved characters of RFC 3986 as %XX.
func escape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
