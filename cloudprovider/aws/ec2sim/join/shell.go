package join

import (
	"errors"
	"fmt"
	"strings"
)

// readShell finds the call of EKS' bootstrap script in the scripts of the user data. If there are more, the last one
// counts: it writes the kubelet's configuration anew.
func readShell(text string) (settings, error) {
	all, err := parts(text)
	if err != nil {
		return settings{}, err
	}
	var call []string
	for _, p := range all {
		if p.kind != "" && p.kind != "text/x-shellscript" {
			continue
		}
		for _, command := range commands(p.text) {
			if len(command) > 0 && strings.HasSuffix(command[0], "/etc/eks/bootstrap.sh") {
				call = command[1:]
			}
		}
	}
	if call == nil {
		return settings{}, errors.New("no script calls /etc/eks/bootstrap.sh")
	}
	return bootstrap(call)
}

// bootstrap reads the arguments of the bootstrap script: the cluster's name and flags that take a value each.
func bootstrap(words []string) (settings, error) {
	var s settings
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "--") {
			s.Cluster = words[i]
			continue
		}
		if i+1 == len(words) {
			return s, fmt.Errorf("bootstrap.sh: %s has no value", words[i])
		}
		name, value := words[i], words[i+1]
		i++
		switch name {
		case "--kubelet-extra-args":
			if err := s.flags(split(value)); err != nil {
				return s, err
			}
		case "--local-disks":
			s.RAID0 = value == "raid0"
		}
	}
	if s.Cluster == "" {
		return s, errors.New("bootstrap.sh: the cluster's name is missing")
	}
	return s, nil
}

// split cuts a command line into words.
func split(line string) []string {
	var words []string
	for _, c := range commands(line) {
		words = append(words, c...)
	}
	return words
}

// commands cuts a shell script into commands, each cut into words: quotes are taken off, lines that end in a backslash
// go on, and comments are left out. Variables are left as they are: the scripts that join a node hardly need any.
func commands(script string) [][]string {
	var all [][]string
	var command []string
	var word strings.Builder
	inWord := false
	endWord := func() {
		if inWord {
			command = append(command, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(command) > 0 {
			all = append(all, command)
		}
		command = nil
	}
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == '\\' && i+1 < len(script):
			i++
			if script[i] != '\n' {
				word.WriteByte(script[i])
				inWord = true
			}
		case c == '\'' || c == '"':
			var quoted string
			quoted, i = untilQuote(script, i)
			word.WriteString(quoted)
			inWord = true
		case c == '#' && !inWord:
			for i+1 < len(script) && script[i+1] != '\n' {
				i++
			}
		case c == '\n' || c == ';' || c == '&' || c == '|':
			endCommand()
		case c == ' ' || c == '\t' || c == '\r':
			endWord()
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	endCommand()
	return all
}

// untilQuote reads what is in quotes from position i on, and returns it with the position of the closing quote.
func untilQuote(script string, i int) (string, int) {
	quote := script[i]
	var b strings.Builder
	for i++; i < len(script) && script[i] != quote; i++ {
		if quote == '"' && script[i] == '\\' && i+1 < len(script) {
			i++
		}
		b.WriteByte(script[i])
	}
	return b.String(), i
}
