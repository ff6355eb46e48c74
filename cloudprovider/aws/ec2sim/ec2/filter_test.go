package ec2

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWildcard(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"*", "", true},
		{"a*", "a", true},
		{"*a*b", "xaxbxab", true},
		{"*a*b", "xaxbxa", false},
		{"?", "", false},
		{"a?c", "abc", true},
		{`a\*c`, "a*c", true},
		{`a\*c`, "abc", false},
		{`a\?`, "a?", true},
		{`a\\b`, `a\b`, true},
		{"amazon-eks-node-*", "amazon-eks-node-1.30", true},
		{"Lab", "lab", false},
	} {
		if got := wildcard(c.pattern, c.text); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.text, got)
		}
	}
}

// TestWildcardTwin holds the matcher against regular expressions.
func TestWildcardTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`([ab*?]|\\[ab*?]){0,8}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[ab*?]{0,10}`).Draw(t, "text")
		var b strings.Builder
		for i := 0; i < len(pattern); i++ {
			switch {
			case pattern[i] == '\\':
				i++
				b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			case pattern[i] == '*':
				b.WriteString(".*")
			case pattern[i] == '?':
				b.WriteString(".")
			default:
				b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
			}
		}
		if want := regexp.MustCompile("^" + b.String() + "$").MatchString(text); wildcard(pattern, text) != want {
			t.Fatalf("%q on %q: want %v", pattern, text, want)
		}
	})
}
