// Package query reads and writes EC2's protocol: requests are forms with names such as Filter.1.Value.2, responses are XML.
// It goes by the SDK's own types, so that every member that they have can be sent and read; what their member names don't
// say is in names.txt. The SDK holds the other half of this protocol, and the tests hold the two against each other.
package query

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed names.txt
var namesFile string

// Names knows the wire names that don't follow from the members' names.
type Names struct {
	in, out, item map[string]string // by Type.Member
}

// NewNames reads the table of names.
func NewNames() *Names {
	n := &Names{in: map[string]string{}, out: map[string]string{}, item: map[string]string{}}
	for line := range strings.Lines(namesFile) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "#" {
			continue
		}
		switch fields[0] {
		case "in":
			n.in[fields[1]] = fields[2]
		case "out":
			n.out[fields[1]] = fields[2]
		case "item":
			n.item[fields[1]] = fields[2]
		}
	}
	return n
}

func (n *Names) request(kind, member string) string {
	if name, ok := n.in[kind+"."+member]; ok {
		return name
	}
	return member
}

func (n *Names) response(kind, member string) string {
	if name, ok := n.out[kind+"."+member]; ok {
		return name
	}
	first, size := utf8.DecodeRuneInString(member)
	return string(unicode.ToLower(first)) + member[size:]
}

func (n *Names) element(kind, member string) string {
	if name, ok := n.item[kind+"."+member]; ok {
		return name
	}
	return "item"
}
