package join

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
)

// system is what an image makes of user data.
type system string

const (
	al2          system = "AL2"
	al2023       system = "AL2023"
	bottlerocket system = "Bottlerocket"
	windows      system = "Windows"
	unknown      system = "" // somebody's own image
)

// systemOf tells by its name what an image is.
func systemOf(imageName string, isWindows bool) system {
	switch {
	case isWindows:
		return windows
	case strings.HasPrefix(imageName, "bottlerocket-"):
		return bottlerocket
	case strings.HasPrefix(imageName, "amazon-eks-node-al2023-"):
		return al2023
	case strings.HasPrefix(imageName, "amazon-eks-"):
		return al2
	}
	return unknown
}

// sniff guesses by the user data what somebody's own image understands.
func sniff(text string) system {
	switch {
	case strings.Contains(text, "-EKSClusterName"):
		return windows
	case strings.Contains(text, "kind: NodeConfig"), strings.Contains(text, nodeConfigType):
		return al2023
	case strings.Contains(text, "bootstrap.sh"):
		return al2
	}
	return bottlerocket
}

// read finds out what the user data tells a machine with the image. An error is the reason for which it never joins.
func read(userData []byte, image system) (settings, error) {
	text, err := unpack(userData)
	if err != nil {
		return settings{}, err
	}
	if image == unknown {
		image = sniff(text)
	}
	var s settings
	switch image {
	case al2:
		s, err = readShell(text)
	case al2023:
		s, err = readNodeConfig(text)
	case bottlerocket:
		s, err = readTOML(text)
	default:
		s, err = readPowerShell(text)
	}
	if err != nil {
		return settings{}, fmt.Errorf("reading user data as %s does: %w", image, err)
	}
	return s, checkLabels(s.Labels)
}

// unpack undoes compression, which cloud-init does, too.
func unpack(data []byte) (string, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return string(data), nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("unpacking user data: %w", err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return "", fmt.Errorf("unpacking user data: %w", err)
	}
	return string(text), nil
}

// part is one part of a MIME archive.
type part struct{ kind, text string }

// parts takes a MIME archive apart; a text that is none is one part without a kind.
func parts(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return []part{{text: text}}, nil
	}
	kind, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return []part{{text: text}}, nil
	}
	var all []part
	for r := multipart.NewReader(message.Body, params["boundary"]); ; {
		p, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the MIME archive: %w", err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, fmt.Errorf("reading a part of the MIME archive: %w", err)
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			return nil, fmt.Errorf("reading the kind of a part of the MIME archive: %w", err)
		}
		all = append(all, part{kind: kind, text: string(body)})
	}
}
