package family

import (
	"errors"
	"fmt"
	"strings"
)

// shellData is the user data of AL2: a MIME archive of the class's parts and, at the end, a script that calls the
// image's own bootstrap script. It is the last, so that what the class does to the machine is done when the kubelet
// starts.
func shellData(n Node) (string, error) {
	parts, err := scriptParts(n.UserData)
	if err != nil {
		return "", err
	}
	if isNodeConfig(n.UserData) {
		return "", errors.New("spec.userData is a NodeConfig, which only images of AL2023 read; AL2 takes a script " +
			"or a MIME archive")
	}
	s, err := n.settings()
	if err != nil {
		return "", err
	}
	return writeArchive(append(parts, newPart(typeShell, bootstrapScript(n, s)))), nil
}

// scriptParts takes a class's user data apart: a MIME archive, or one text of a kind that cloud-init knows.
func scriptParts(userData string) ([]part, error) {
	userData = unixLines(userData)
	switch {
	case strings.TrimSpace(userData) == "":
		return nil, nil
	case isArchive(userData):
		parts, err := readArchive(userData)
		if err != nil {
			return nil, fmt.Errorf("spec.userData begins like a MIME archive but is none: %w", err)
		}
		return parts, checkScripts(parts)
	case isTOML(userData):
		return nil, errors.New("spec.userData is TOML, which only images of Bottlerocket read; write a script or a " +
			"MIME archive")
	case isPowerShell(userData):
		return nil, errors.New("spec.userData is written for Windows; Linux takes a script or a MIME archive")
	default:
		return []part{newPart(scriptType(userData), userData)}, nil
	}
}

// checkScripts refuses parts that are handed to a shell, which makes nothing of them.
func checkScripts(parts []part) error {
	for i, p := range parts {
		if p.mediaType() != typeShell {
			continue
		}
		if body, err := p.plain(); err == nil && isNodeConfig(body) {
			return fmt.Errorf("spec.userData: part %d is a NodeConfig but says that it is a script; images of AL2023 "+
				"read it if its Content-Type is %s", i+1, typeNodeConfig)
		}
	}
	return nil
}

// isTOML tells whether a text begins like Bottlerocket's settings, whatever is remarked before them.
func isTOML(text string) bool {
	if strings.HasPrefix(strings.TrimSpace(text), "#!") {
		return false
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return strings.HasPrefix(line, "[settings]") || strings.HasPrefix(line, "[settings.")
		}
	}
	return false
}

// isPowerShell tells whether a text begins with the element in which EC2 hands commands to Windows.
func isPowerShell(text string) bool {
	at := openingTag.FindStringIndex(strings.TrimSpace(text))
	return at != nil && at[0] == 0
}

// scriptType tells by the first word of its first line what a text is to cloud-init. A text without one that it knows
// is taken for a shell script: a remark that only begins with the same letters is a remark.
func scriptType(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return typeShell
	}
	switch words[0] {
	case "#cloud-config":
		return "text/cloud-config"
	case "#cloud-config-archive":
		return "text/cloud-config-archive"
	case "#cloud-boothook":
		return "text/cloud-boothook"
	case "#include":
		return "text/x-include-url"
	case "#include-once":
		return "text/x-include-once-url"
	case "##":
		if len(words) > 2 && words[1] == "template:" && words[2] == "jinja" {
			return "text/jinja2"
		}
	}
	return typeShell
}

// bootstrapScript calls the script that EKS puts into its AL2 images. Its parameters take no equals sign.
func bootstrapScript(n Node, s settings) string {
	call := []string{"/etc/eks/bootstrap.sh " + shellQuoted(n.Cluster.Name)}
	add := func(flag, value string) { call = append(call, "  "+flag+" "+value) }
	add("--apiserver-endpoint", shellQuoted(n.Endpoint))
	if n.CABundle != "" {
		add("--b64-cluster-ca", shellQuoted(n.CABundle))
	}
	if n.ipv6(s.ClusterDNS) {
		add("--ip-family", "ipv6")
		if n.ServiceCIDR != "" {
			add("--service-ipv6-cidr", shellQuoted(n.ServiceCIDR))
		}
	}
	if len(s.ClusterDNS) > 0 {
		add("--dns-cluster-ip", shellQuoted(s.ClusterDNS[0]))
	}
	if s.MaxPods != nil { // or the script would compute a number of its own
		add("--use-max-pods", "false")
	}
	var args []string
	for _, a := range n.kubeletArguments(s) {
		args = append(args, a.flag+"="+a.value)
	}
	add("--kubelet-extra-args", shellQuoted(strings.Join(args, " ")))
	if n.RAID0 {
		add("--local-disks", "raid0")
	}
	return "#!/bin/bash\nset -o errexit\n" + strings.Join(call, " \\\n") + "\n"
}

// shellQuoted makes one word of the text for a shell.
func shellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// unixLines ends lines as Linux does: a script with other line ends does not run.
func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }
