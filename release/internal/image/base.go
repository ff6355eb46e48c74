package image

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io/fs"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/tenon-sh/tenon/release/internal/archive"
)

// user is the number that distroless images and the contract's chart give to who must not be root.
const user = 65532

// certificatesPath is where Go programs on Linux look first. A cluster that trusts a certificate of its own mounts its
// list over it.
const certificatesPath = "etc/ssl/certs/ca-certificates.crt"

// base is all that a static executable needs from a system: whom to trust, who it is, and where to put what may be
// lost. Time zones are in the executable (time/tzdata). There is no shell, no package manager and no library to keep
// current.
func base() ([]archive.Entry, error) {
	certificates, err := roots()
	if err != nil {
		return nil, err
	}
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/home/nonroot:/sbin/nologin\n",
		user, user)
	group := fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", user)
	return []archive.Entry{
		{Name: "etc/", Mode: 0o755},
		{Name: "etc/group", Mode: 0o644, Text: []byte(group)},
		{Name: "etc/nsswitch.conf", Mode: 0o644, Text: []byte("hosts: files dns\n")},
		{Name: "etc/passwd", Mode: 0o644, Text: []byte(passwd)},
		{Name: "etc/ssl/", Mode: 0o755},
		{Name: "etc/ssl/certs/", Mode: 0o755},
		{Name: certificatesPath, Mode: 0o644, Text: certificates},
		{Name: "home/", Mode: 0o755},
		{Name: "home/nonroot/", Mode: 0o700, Owner: user},
		{Name: "tmp/", Mode: fs.ModeSticky | 0o777},
	}, nil
}

// roots are the certificates that Mozilla trusts, as the Go team hands them on in a module: pinned by go.sum, brought
// by the module proxy like all else, and renewed as any dependency is. A root that Mozilla trusts for old certificates
// only is left out, since a file has no words for such a condition.
func roots() ([]byte, error) {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, fmt.Errorf("writing the list of certificates: %w", err)
		}
	}
	return out.Bytes(), nil
}
