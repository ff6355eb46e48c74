package family

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"
	"unicode/utf8"
)

// Content types of the parts of user data.
const (
	typeShell      = "text/x-shellscript"
	typeNodeConfig = "application/node.eks.aws"
)

// part is one piece of a MIME archive: what cloud-init or nodeadm takes as a unit.
type part struct {
	header map[string][]string
	body   string
}

// newPart makes a part of text, with the character set that the text needs.
func newPart(contentType, body string) part {
	if strings.HasPrefix(contentType, "text/") {
		charset := "us-ascii"
		if strings.ContainsFunc(body, func(r rune) bool { return r >= utf8.RuneSelf }) {
			charset = "utf-8"
		}
		contentType = fmt.Sprintf("%s; charset=%q", contentType, charset)
	}
	return part{header: map[string][]string{"Content-Type": {contentType}}, body: body}
}

// mediaType is the part's content type without parameters, in lower case.
func (p part) mediaType() string {
	for name, values := range p.header {
		if strings.EqualFold(name, "Content-Type") && len(values) > 0 {
			kind, _, _ := strings.Cut(values[0], ";")
			return strings.ToLower(strings.TrimSpace(kind))
		}
	}
	return "text/plain"
}

// plain is the part's text as nodeadm reads it: decoded from base64 if its header says so, and unpacked if it was
// packed with gzip.
func (p part) plain() (string, error) {
	data := []byte(p.body)
	for name, values := range p.header {
		if strings.EqualFold(name, "Content-Transfer-Encoding") && len(values) > 0 &&
			strings.EqualFold(strings.TrimSpace(values[0]), "base64") {
			decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(p.body), ""))
			if err != nil {
				return "", fmt.Errorf("its header says base64, but: %w", err)
			}
			data = decoded
		}
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return string(data), nil
	}
	packed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("it begins as if packed with gzip, but: %w", err)
	}
	unpacked, err := io.ReadAll(io.LimitReader(packed, longestPart))
	if err != nil {
		return "", fmt.Errorf("it begins as if packed with gzip, but: %w", err)
	}
	return string(unpacked), nil
}

// longestPart bounds what a packed part may unpack to. User data is small.
const longestPart = 1 << 20

// isArchive tells whether user data begins with the header of a MIME message.
func isArchive(text string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(text), ":")
	return strings.EqualFold(first, "MIME-Version") || strings.EqualFold(first, "Content-Type")
}

// readArchive takes a MIME message apart. A message that is not a multipart one is a single part.
func readArchive(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(strings.TrimLeft(text, " \t\n")))
	if err != nil {
		return nil, fmt.Errorf("read the MIME header: %w", err)
	}
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read the MIME header Content-Type: %w", err)
	}
	if !strings.HasPrefix(kind, "multipart/") {
		body, err := io.ReadAll(message.Body)
		if err != nil {
			return nil, fmt.Errorf("read the MIME body: %w", err)
		}
		header := map[string][]string(message.Header)
		delete(header, "Mime-Version")
		return []part{{header: header, body: string(body)}}, nil
	}
	if params["boundary"] == "" {
		return nil, errors.New("the MIME header Content-Type has no boundary; write it as multipart/mixed; " +
			"boundary=\"…\"")
	}
	parts, err := readParts(multipart.NewReader(message.Body, params["boundary"]))
	if err == nil && len(parts) == 0 {
		return nil, fmt.Errorf("it has no part: no line is --%s, which its header says is between the parts",
			params["boundary"])
	}
	return parts, err
}

// readParts reads up to the end. An archive that lacks its closing line is taken as it is, as cloud-init takes it. The
// parts are read raw, so that an encoded one stays as its header says.
func readParts(reader *multipart.Reader) ([]part, error) {
	var parts []part
	for {
		next, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read MIME part %d: %w", len(parts)+1, err)
		}
		body, err := io.ReadAll(next)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("read MIME part %d: %w", len(parts)+1, err)
		}
		parts = append(parts, part{header: next.Header, body: string(body)})
		if err != nil {
			return parts, nil
		}
	}
}

// writeArchive puts parts together, in their order. The same parts always give the same bytes.
func writeArchive(parts []part) string {
	line := boundary(parts)
	var b strings.Builder
	fmt.Fprintf(&b, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=%q\n\n", line)
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\n", line)
		for _, name := range slices.Sorted(maps.Keys(p.header)) {
			for _, value := range p.header[name] {
				fmt.Fprintf(&b, "%s: %s\n", name, value)
			}
		}
		fmt.Fprintf(&b, "\n%s\n", p.body)
	}
	fmt.Fprintf(&b, "--%s--\n", line)
	return b.String()
}

// boundary is the contract's, or the first like it that no part's text contains.
func boundary(parts []part) string {
	line := "//"
	for n := 1; slices.ContainsFunc(parts, func(p part) bool {
		return strings.Contains("\n"+p.body, "\n--"+line)
	}); n++ {
		line = fmt.Sprintf("//%d", n)
	}
	return line
}
