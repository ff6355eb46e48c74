package family

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// powerShellData is the user data of Windows: the class's commands, then a call of the script that EKS puts into its
// images. What the class has outside of its own powershell element stays outside.
func powerShellData(n Node) (string, error) {
	s, err := n.settings()
	if err != nil {
		return "", err
	}
	if isForLinux(n.UserData) {
		return "", errors.New("spec.userData is written for Linux; Windows takes commands of PowerShell, with or " +
			"without <powershell> around them")
	}
	start := startScript(n, s)
	if closingTag.MatchString(start) { // EC2 looks for it without reading what is quoted
		return "", errors.New("the cluster's name, endpoint, certificate or service CIDR has </powershell> in it, " +
			"which ends the commands; correct the settings")
	}
	commands, rest := unwrapped(n.UserData)
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if commands != "" {
		b.WriteString(commands + "\n")
	}
	b.WriteString(start)
	b.WriteString("</powershell>\n")
	if rest != "" {
		b.WriteString(rest + "\n")
	}
	return b.String(), nil
}

// isForLinux tells whether user data begins with what only Linux makes something of.
func isForLinux(userData string) bool {
	return strings.HasPrefix(strings.TrimSpace(userData), "#!") || isArchive(userData) ||
		scriptType(userData) != typeShell ||
		isTOML(userData) || isNodeConfig(userData)
}

// Tags of the element, which EC2 reads in any case.
var (
	openingTag = regexp.MustCompile(`(?i)<powershell>`)
	closingTag = regexp.MustCompile(`(?i)</powershell>`)
)

// unwrapped takes the commands out of the powershell elements, if they are in any. The commands of several are put
// together in their order: what the class does to the machine is done before the node joins.
func unwrapped(userData string) (commands, rest string) {
	if !openingTag.MatchString(userData) {
		return strings.TrimRight(userData, "\r\n"), ""
	}
	var inside, outside []string
	for left := userData; left != ""; {
		at := openingTag.FindStringIndex(left)
		if at == nil {
			outside = append(outside, left)
			break
		}
		outside, left = append(outside, left[:at[0]]), left[at[1]:]
		if end := closingTag.FindStringIndex(left); end != nil {
			inside, left = append(inside, left[:end[0]]), left[end[1]:]
		} else {
			inside, left = append(inside, left), ""
		}
	}
	return joinedTexts(inside, "\r\n"), joinedTexts(outside, " \t\r\n")
}

// joinedTexts puts texts under each other, without what surrounds them.
func joinedTexts(texts []string, around string) string {
	var out []string
	for _, text := range texts {
		if text = strings.Trim(text, around); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "\n")
}

// startScript calls the bootstrap script.
func startScript(n Node, s settings) string {
	call := []string{`& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"`}
	add := func(flag, value string) {
		if value != "" {
			call = append(call, flag+" "+powerShellQuoted(value))
		}
	}
	add("-EKSClusterName", n.Cluster.Name)
	add("-APIServerEndpoint", n.Endpoint)
	add("-Base64ClusterCA", n.CABundle)
	var args []string
	for _, a := range n.kubeletArguments(s) {
		args = append(args, fmt.Sprintf("%s=%s", a.flag, windowsQuoted(a.value)))
	}
	add("-KubeletExtraArgs", strings.Join(args, " "))
	if len(s.ClusterDNS) > 0 {
		add("-DNSClusterIP", s.ClusterDNS[0])
	}
	if !n.ipv6(s.ClusterDNS) { // otherwise the script guesses a range by the address of the machine
		add("-ServiceCIDR", n.ServiceCIDR)
	}
	return strings.Join(call, " ") + "\n"
}

// powerShellQuoted makes one word of the text for PowerShell. To it typographic quotes are quotes, too; each is written
// twice.
func powerShellQuoted(text string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range text {
		if b.WriteRune(r); r == '\'' || r >= '\u2018' && r <= '\u201b' {
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// windowsQuoted puts lists into quotes, as the script's documentation does, and leaves single words alone.
func windowsQuoted(value string) string {
	if strings.ContainsAny(value, ",=<") {
		return `"` + value + `"`
	}
	return value
}
