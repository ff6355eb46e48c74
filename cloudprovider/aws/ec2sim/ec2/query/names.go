// Package query reads and writes EC2's protocol: requests are forms with names such as Filter.1.Value.2, responses are
// XML. It goes by the SDK's own types, so that every member that they have can be sent and read; what their member
// names don't say is in names.txt. The SDK holds the other half of this protocol, and the tests hold the two against
// each other.
package query

import (
	_ "embed"
	"reflect"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

//go:embed names.txt
var namesFile string

// Names knows the wire names that don't follow from the members' names.
type Names struct {
	in, out, item map[string]string // by Type.Member
	members       sync.Map          // reflect.Type -> []member: a list of a thousand instances asks often
}

// member is a member of a structure with its names on the wire.
type member struct {
	index                      int
	request, response, element string
}

// membersOf lists the members of a structure that are sent.
func (n *Names) membersOf(t reflect.Type) []member {
	if known, ok := n.members.Load(t); ok {
		return known.([]member)
	}
	var list []member
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() || field.Name == "ResultMetadata" {
			continue
		}
		list = append(list, member{
			index: i, request: n.request(t.Name(), field.Name), response: n.response(t.Name(), field.Name),
			element: n.element(t.Name(), field.Name),
		})
	}
	n.members.Store(t, list)
	return list
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
