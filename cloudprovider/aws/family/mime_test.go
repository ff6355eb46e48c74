package family

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// What was put together comes apart the same, whatever the parts say.
func TestArchiveRoundTrip(t *testing.T) {
	dice := rand.New(rand.NewPCG(6, 28))
	words := []string{"--//", "--//1", "--//1--", "\n", "\n\n", "--", "//", "#!/bin/bash", "echo hi", " ", "--//--",
		"Content-Type: x/y"}
	for range 2000 {
		var parts []part
		for range 1 + dice.IntN(4) {
			var body strings.Builder
			for range dice.IntN(12) {
				body.WriteString(words[dice.IntN(len(words))])
			}
			parts = append(parts, newPart(typeShell, body.String()))
		}
		written := writeArchive(parts)
		got, err := readArchive(written)
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if !same(got, parts) {
			t.Fatalf("have %q, want %q, written as\n%s", got, parts, written)
		}
	}
}

func same(a, b []part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].body != b[i].body || !maps.EqualFunc(a[i].header, b[i].header, func(x, y []string) bool {
			return reflect.DeepEqual(x, y)
		}) {
			return false
		}
	}
	return true
}

func TestReadArchive(t *testing.T) {
	for _, c := range []struct {
		name, text string
		bodies     []string
		types      []string
	}{
		{"one part that is no archive", "Content-Type: Text/X-Shellscript; charset=utf-8\nMIME-Version: " +
			"1.0\n\n#!/bin/sh\n", []string{"#!/bin/sh\n"}, []string{typeShell}},
		{"no closing line", "Content-Type: multipart/mixed; boundary=B\n\n--B\n\nfirst\n--B\n\nsecond",
			[]string{"first", "second"}, []string{"text/plain", "text/plain"}},
		{"an opening line at the end", "Content-Type: multipart/mixed; boundary=B\n\n--B\n\nfirst\n--B\n",
			[]string{"first"}, []string{"text/plain"}},
		{"text around it", "\n\nContent-Type: multipart/mixed; boundary=B\n\npreamble\n--B\nContent-Type: " +
			"a/b\n\nfirst\n--B--\nepilogue\n", []string{"first"}, []string{"a/b"}},
	} {
		parts, err := readArchive(c.text)
		if err != nil || len(parts) != len(c.bodies) {
			t.Errorf("%s: have %q, %v", c.name, parts, err)
			continue
		}
		for i, p := range parts {
			if p.body != c.bodies[i] || p.mediaType() != c.types[i] {
				t.Errorf("%s: part %d is %q of type %s", c.name, i, p.body, p.mediaType())
			}
		}
	}
}

func TestLineEndsOfWindowsAreMended(t *testing.T) {
	parts, err := scriptParts("#!/bin/bash\r\necho hi\r\n")
	if err != nil || len(parts) != 1 || parts[0].body != "#!/bin/bash\necho hi\n" {
		t.Errorf("have %q, %v", parts, err)
	}
	parts, err = scriptParts("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; " +
		"boundary=B\r\n\r\n--B\r\n\r\n#!/bin/bash\r\necho hi\r\n--B--\r\n")
	if err != nil || len(parts) != 1 || parts[0].body != "#!/bin/bash\necho hi" {
		t.Errorf("have %q, %v", parts, err)
	}
}

// A bare text gets the type that cloud-init knows it by, and a remark that only looks like one is a script.
func TestScriptType(t *testing.T) {
	for text, want := range map[string]string{
		"#!/bin/bash\n":                         typeShell,
		"":                                      typeShell,
		"#includes helper functions\necho hi\n": typeShell,
		"#cloud-configuration of ours\necho hi\n":   typeShell,
		"## template: ours\necho hi\n":              typeShell,
		"echo hi\n#cloud-config\n":                  typeShell,
		"\n#cloud-config\npackages: []\n":           "text/cloud-config",
		"#cloud-config # ours\n":                    "text/cloud-config",
		"#cloud-config-archive\n- {}\n":             "text/cloud-config-archive",
		"#cloud-boothook\r\necho hi\r\n":            "text/cloud-boothook",
		"#include\nhttps://example.com/a\n":         "text/x-include-url",
		"#include https://example.com/a":            "text/x-include-url",
		"#include-once\nhttps://example.com/a\n":    "text/x-include-once-url",
		"## template: jinja\n#cloud-config\nx: 1\n": "text/jinja2",
	} {
		if got := scriptType(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
