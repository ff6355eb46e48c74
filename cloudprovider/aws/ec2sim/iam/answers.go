package iam

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

type tagOut struct{ Key, Value string }

func tagsOut(tags map[string]string) []tagOut {
	out := make([]tagOut, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, tagOut{key, tags[key]})
	}
	return out
}

type roleOut struct {
	Path                     string
	RoleName                 string
	RoleID                   string `xml:"RoleId"`
	ARN                      string `xml:"Arn"`
	CreateDate               string
	AssumeRolePolicyDocument string
	MaxSessionDuration       int
}

type profileOut struct {
	InstanceProfileName string
	InstanceProfileID   string `xml:"InstanceProfileId"`
	ARN                 string `xml:"Arn"`
	Path                string
	CreateDate          string
	Roles               []roleOut `xml:"Roles>member"`
	Tags                []tagOut  `xml:"Tags>member"`
}

type listOut struct {
	IsTruncated bool
	Marker      string       `xml:",omitempty"`
	Profiles    []profileOut `xml:"InstanceProfiles>member"`
}

// trust is the policy that lets EC2 use a role, as IAM shows policies: escaped like a URL.
const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},` +
	`"Action":"sts:AssumeRole"}]}`

func (s *Service) roleOut(r Role) roleOut {
	return roleOut{
		Path: r.Path, RoleName: r.Name, RoleID: idOf("AROA", r.ARN, r.Created), ARN: r.ARN,
		CreateDate:               stamp(r.Created),
		AssumeRolePolicyDocument: url.QueryEscape(trust), MaxSessionDuration: 3600,
	}
}

func (s *Service) profileOut(p *Profile) profileOut {
	out := profileOut{
		InstanceProfileName: p.Name, InstanceProfileID: idOf("AIPA", p.ARN, p.Created), ARN: p.ARN, Path: p.Path,
		CreateDate: stamp(p.Created), Tags: tagsOut(p.Tags),
	}
	if r, ok := s.roles[p.Role]; ok {
		out.Roles = []roleOut{s.roleOut(r)}
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// pageSize reads MaxItems: 1 to 1000, 100 if nothing is said.
func pageSize(text string) (int, *wire.Error) {
	if text == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1000 {
		return 0, wire.Errorf("ValidationError", "1 validation error detected: Value '%s' at 'maxItems' failed to "+
			"satisfy constraint: Member must have value between 1 and 1000", text)
	}
	return n, nil
}
