package iam

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

var (
	nameForm = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)
	pathForm = regexp.MustCompile(`^(/|/[\x21-\x7f]{1,510}/)$`)
)

// tagText is what IAM allows in a tag, less than EC2 does.
var tagText = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// maxTags is how many tags a profile may have.
const maxTags = 50

func (s *Service) getRole(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.roles[form.Get("RoleName")]
	if !ok {
		return nil, noSuchRole(form.Get("RoleName"))
	}
	return struct{ Role roleOut }{s.roleOut(r)}, nil
}

// profileNamed finds the profile that a form names. The lock is held.
func (s *Service) profileNamed(form url.Values) (*Profile, *wire.Error) {
	name := form.Get("InstanceProfileName")
	p := s.profiles[name]
	if p == nil {
		return nil, noSuchProfile(name)
	}
	return p, nil
}

func (s *Service) getProfile(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	return struct{ InstanceProfile profileOut }{s.profileOut(p)}, nil
}

func (s *Service) createProfile(_ *wire.Call, form url.Values) (any, *wire.Error) {
	name, path := form.Get("InstanceProfileName"), form.Get("Path")
	if path == "" {
		path = "/"
	}
	if !nameForm.MatchString(name) {
		return nil, wire.Errorf("ValidationError", "The specified value for instanceProfileName is invalid. It must "+
			"contain only alphanumeric characters and/or the following: +=,.@_- and be at most 128 long")
	}
	if !pathForm.MatchString(path) {
		return nil, wire.Errorf("ValidationError", "The specified value for path is invalid. It must begin and end "+
			"with / and contain only alphanumeric characters and/or / characters.")
	}
	tags := protocol.Pairs(form, "Tags")
	if err := checkTags(tags); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.profiles[name] != nil {
		return nil, conflict("EntityAlreadyExists", "Instance Profile %s already exists.", name)
	}
	if len(s.profiles) >= s.opts.MaxProfiles {
		return nil, conflict("LimitExceeded", "Cannot exceed quota for InstanceProfilesPerAccount: %d",
			s.opts.MaxProfiles)
	}
	p := &Profile{Name: name, Path: path, ARN: s.arn("instance-profile" + path + name), Created: s.opts.Clock.Now(),
		Tags: tags}
	s.profiles[name] = p
	return struct{ InstanceProfile profileOut }{s.profileOut(p)}, nil
}

func (s *Service) deleteProfile(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	if p.Role != "" {
		return nil, conflict("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(s.profiles, p.Name)
	return nil, nil
}

func (s *Service) addRole(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	role := form.Get("RoleName")
	if _, ok := s.roles[role]; !ok {
		return nil, noSuchRole(role)
	}
	if p.Role != "" {
		return nil, conflict("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	p.Role, p.RoleSince = role, s.opts.Clock.Now()
	return nil, nil
}

func (s *Service) removeRole(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	role := form.Get("RoleName")
	if p.Role != role {
		return nil, &wire.Error{Code: "NoSuchEntity", Status: http.StatusNotFound, Message: "Role " + role +
			" is not in Instance Profile " + p.Name + "."}
	}
	p.Role = ""
	return nil, nil
}

func (s *Service) tagProfile(_ *wire.Call, form url.Values) (any, *wire.Error) {
	tags := protocol.Pairs(form, "Tags")
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(p.Tags)
	maps.Copy(all, tags)
	if err := checkTags(all); err != nil {
		return nil, err
	}
	p.Tags = all
	return nil, nil
}

func (s *Service) untagProfile(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	for _, key := range protocol.List(form, "TagKeys") {
		delete(p.Tags, key)
	}
	return nil, nil
}

func checkTags(tags map[string]string) *wire.Error {
	if len(tags) > maxTags {
		return conflict("LimitExceeded", "The number of tags has reached the maximum limit of %d.", maxTags)
	}
	for key, value := range tags {
		switch {
		case key == "" || len(key) > 128:
			return wire.Errorf("InvalidInput", "Tag keys must be between 1 and 128 characters long: %q", key)
		case len(value) > 256:
			return wire.Errorf("InvalidInput", "Tag values must be at most 256 characters long: %q", value)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return wire.Errorf("InvalidInput", "Tag keys must not begin with aws: %q", key)
		case !tagText.MatchString(key):
			return wire.Errorf("ValidationError", "1 validation error detected: Value %q at 'tags.member.key' failed "+
				"to satisfy constraint: Member must satisfy regular expression pattern: %s", key, tagText)
		case !tagText.MatchString(value):
			return wire.Errorf("ValidationError", "1 validation error detected: Value %q at 'tags.member.value' "+
				"failed to satisfy constraint: Member must satisfy regular expression pattern: %s", value, tagText)
		}
	}
	return nil
}

func (s *Service) listTags(_ *wire.Call, form url.Values) (any, *wire.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.profileNamed(form)
	if err != nil {
		return nil, err
	}
	return struct {
		IsTruncated bool
		Tags        []tagOut `xml:"Tags>member"`
	}{false, tagsOut(p.Tags)}, nil
}

func (s *Service) listProfiles(_ *wire.Call, form url.Values) (any, *wire.Error) {
	prefix := form.Get("PathPrefix")
	return s.list(form, func(p *Profile) bool { return strings.HasPrefix(p.Path, prefix) })
}

func (s *Service) listForRole(_ *wire.Call, form url.Values) (any, *wire.Error) {
	role := form.Get("RoleName")
	if _, ok := s.Role(role); !ok {
		return nil, noSuchRole(role)
	}
	return s.list(form, func(p *Profile) bool { return p.Role == role })
}

func (s *Service) list(form url.Values, keep func(*Profile) bool) (any, *wire.Error) {
	size, err := pageSize(form.Get("MaxItems"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, p := range s.profiles {
		if keep(p) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	part, next, ok := protocol.Page(names, form.Get("Marker"), size)
	if !ok {
		return nil, wire.Errorf("ValidationError", "Invalid Marker.")
	}
	out := listOut{IsTruncated: next != "", Marker: next}
	for _, name := range part {
		one := s.profileOut(s.profiles[name])
		one.Tags = nil // lists leave the tags out; GetInstanceProfile has them
		out.Profiles = append(out.Profiles, one)
	}
	return out, nil
}
