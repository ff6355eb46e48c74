package family

import (
	"fmt"
	"strings"
)

// powerShellData is the user data of Windows: the class's commands, then a call of the script that EKS puts into its
// images. What the class has outside of its own powershell element stays outside.
func powerShellData(n Node) (string, error) {
	s, err := n.settings()
	if err != nil {
		return "", err
	}
	commands, rest := unwrapped(n.UserData)
	var b strings.Builder
	b.WriteString("<powershell>\n")
	if commands != "" {
		b.WriteString(commands + "\n")
	}
	b.WriteString(startScript(n, s))
	b.WriteString("</powershell>\n")
	if rest != "" {
		b.WriteString(rest + "\n")
	}
	return b.String(), nil
}

// unwrapped takes the commands out of a powershell element, if they are in one.
func unwrapped(userData string) (commands, rest string) {
	const opening, closing = "<powershell>", "</powershell>"
	before, after, opened := strings.Cut(userData, opening)
	if !opened {
		return strings.TrimRight(userData, "\r\n"), ""
	}
	inside, behind, _ := strings.Cut(after, closing)
	return strings.Trim(inside, "\r\n"), strings.TrimSpace(strings.TrimSpace(before) + "\n" + strings.TrimSpace(behind))
}

// startScript calls the bootstrap script.
func startScript(n Node, s settings) string {
	call := []string{`& "$env:ProgramFiles\Amazon\EKS\Start-EKSBootstrap.ps1"`}
	add := func(flag, value string) {
		if value != "" {
			call = append(call, fmt.Sprintf("%s '%s'", flag, strings.ReplaceAll(value, "'", "''")))
		}
	}
	add("-EKSClusterName", n.ClusterName)
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

// windowsQuoted puts lists into quotes, as the script's documentation does, and leaves single words alone.
func windowsQuoted(value string) string {
	if strings.ContainsAny(value, ",=<") {
		return `"` + value + `"`
	}
	return value
}
