// Package iam is the part of the simulated cloud that knows roles and instance profiles.
package iam

import (
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/protocol"
	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// Options are what a service is made of.
type Options struct {
	Clock   wire.Clock
	Account string
	// Propagation is how long EC2 does not know a new instance profile, nor the role that was put into one.
	Propagation time.Duration
	// MaxProfiles is the account's limit; 1000 if zero.
	MaxProfiles int
}

// Service keeps roles and instance profiles. It is a wire.Service.
type Service struct {
	protocol.Query
	opts Options

	mu       sync.Mutex
	roles    map[string]Role
	profiles map[string]*Profile
}

// Role is a role. Roles are made here; the wire only shows them.
type Role struct {
	Name, Path, ARN string
	Created         time.Time
	Tags            map[string]string
}

// Profile is an instance profile.
type Profile struct {
	Name, Path, ARN string
	Created         time.Time
	Role            string // at most one
	RoleSince       time.Time
	Tags            map[string]string
}

// New makes a service without roles and profiles.
func New(opts Options) *Service {
	if opts.MaxProfiles == 0 {
		opts.MaxProfiles = 1000
	}
	s := &Service{opts: opts, roles: map[string]Role{}, profiles: map[string]*Profile{}}
	s.Query = protocol.Query{Service: "iam", Namespace: "https://iam.amazonaws.com/doc/2010-05-08/",
		Ops: map[string]protocol.FormOp{
			"GetRole":                       s.getRole,
			"GetInstanceProfile":            s.getProfile,
			"CreateInstanceProfile":         s.createProfile,
			"DeleteInstanceProfile":         s.deleteProfile,
			"AddRoleToInstanceProfile":      s.addRole,
			"RemoveRoleFromInstanceProfile": s.removeRole,
			"TagInstanceProfile":            s.tagProfile,
			"UntagInstanceProfile":          s.untagProfile,
			"ListInstanceProfileTags":       s.listTags,
			"ListInstanceProfiles":          s.listProfiles,
			"ListInstanceProfilesForRole":   s.listForRole,
		}}
	return s
}

// PutRole makes a role.
func (s *Service) PutRole(name string) Role {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Role{Name: name, Path: "/", ARN: s.arn("role/" + name), Created: s.opts.Clock.Now(), Tags: map[string]string{}}
	s.roles[name] = r
	return r
}

// PutProfile makes an instance profile with a role that there is already.
func (s *Service) PutProfile(name, role string) Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Clock.Now()
	p := &Profile{Name: name, Path: "/", ARN: s.arn("instance-profile/" + name), Created: now, Role: role,
		RoleSince: now, Tags: map[string]string{}}
	s.profiles[name] = p
	return *p
}

// RemoveRole makes a role go, and leaves the profiles that had it empty.
func (s *Service) RemoveRole(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.roles, name)
	for _, p := range s.profiles {
		if p.Role == name {
			p.Role = ""
		}
	}
}

// Role finds a role by its name or ARN.
func (s *Service) Role(nameOrARN string) (Role, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOrARN
	if i := strings.LastIndexByte(nameOrARN, '/'); strings.HasPrefix(nameOrARN, "arn:") && i >= 0 {
		name = nameOrARN[i+1:]
	}
	r, ok := s.roles[name]
	return r, ok && (name == nameOrARN || r.ARN == nameOrARN)
}

// Profiles lists the instance profiles, in no order.
func (s *Service) Profiles() []Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Profile, 0, len(s.profiles))
	for _, p := range s.profiles {
		one := *p
		one.Tags = maps.Clone(p.Tags)
		all = append(all, one)
	}
	return all
}

// KnownToEC2 says whether EC2 would launch with a profile, by name or ARN: it is there, and the news has got around.
func (s *Service) KnownToEC2(nameOrARN string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Clock.Now()
	for _, p := range s.profiles {
		if p.Name == nameOrARN || p.ARN == nameOrARN {
			return !now.Before(p.Created.Add(s.opts.Propagation))
		}
	}
	return false
}

func (s *Service) arn(rest string) string {
	return fmt.Sprintf("arn:aws:iam::%s:%s", s.opts.Account, rest)
}

// idOf is the unique id that IAM gives a thing: here always the same for the same thing.
func idOf(prefix, arn string, at time.Time) string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, arn, at.UnixNano())
	return fmt.Sprintf("%s%017X", prefix, h.Sum64())[:21]
}

func noSuchRole(name string) *wire.Error {
	return &wire.Error{Code: "NoSuchEntity", Status: http.StatusNotFound, Message: fmt.Sprintf("The role with name "+
		"%s cannot be found.", name)}
}

func noSuchProfile(name string) *wire.Error {
	return &wire.Error{Code: "NoSuchEntity", Status: http.StatusNotFound, Message: fmt.Sprintf("Instance Profile %s "+
		"cannot be found.", name)}
}

func conflict(code, format string, args ...any) *wire.Error {
	return &wire.Error{Code: code, Status: http.StatusConflict, Message: fmt.Sprintf(format, args...)}
}
