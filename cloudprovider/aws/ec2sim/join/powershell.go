package join

import (
	"errors"
	"regexp"
	"strings"
)

// parameter finds -Name 'value' and -Name "value"; a quote in a value is doubled.
var parameter = regexp.MustCompile(`(?s)-([A-Za-z0-9]+)[ \t]+(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)")`)

// readPowerShell finds the call of EKS' start script: the last line that names the cluster.
func readPowerShell(text string) (settings, error) {
	_, inside, found := strings.Cut(text, "<powershell>")
	if !found {
		return settings{}, errors.New("there is no <powershell> element")
	}
	inside, _, _ = strings.Cut(inside, "</powershell>")
	at := strings.LastIndex(inside, "-EKSClusterName")
	if at < 0 {
		return settings{}, errors.New("nothing calls Start-EKSBootstrap.ps1")
	}
	call, _, _ := strings.Cut(inside[at:], "\n")
	var s settings
	for _, m := range parameter.FindAllStringSubmatch(call, -1) {
		value := strings.ReplaceAll(m[2], "''", "'")
		if m[3] != "" {
			value = strings.ReplaceAll(m[3], `""`, `"`)
		}
		switch m[1] {
		case "EKSClusterName":
			s.Cluster = value
		case "KubeletExtraArgs":
			if err := s.flags(split(value)); err != nil {
				return s, err
			}
		}
	}
	if s.Cluster == "" {
		return s, errors.New("the call of Start-EKSBootstrap.ps1 does not name the cluster")
	}
	return s, nil
}
