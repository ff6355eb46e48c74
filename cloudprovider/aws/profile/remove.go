package profile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// Profile is an instance profile that was made for a class.
type Profile struct {
	Name string
	// ClassUID is the class that it was made for.
	ClassUID  string
	CreatedAt time.Time
	roles     []iamtypes.Role
}

// List lists the profiles that were made for the classes of this cluster.
func (k *Keeper) List(ctx context.Context) ([]Profile, error) {
	return k.list(ctx, k.root())
}

func (k *Keeper) list(ctx context.Context, prefix string) ([]Profile, error) {
	var out []Profile
	in := &iam.ListInstanceProfilesInput{PathPrefix: &prefix, MaxItems: new(int32(1000))}
	for {
		page, err := k.api.ListInstanceProfiles(ctx, in)
		if err != nil {
			return nil, fault.Explain("listing the instance profiles under "+prefix, err)
		}
		for _, p := range page.InstanceProfiles {
			one := Profile{roles: p.Roles}
			if p.InstanceProfileName != nil {
				one.Name = *p.InstanceProfileName
			}
			if p.Path != nil {
				one.ClassUID = strings.Trim(strings.TrimPrefix(*p.Path, k.root()), "/")
			}
			if p.CreateDate != nil {
				one.CreatedAt = *p.CreateDate
			}
			out = append(out, one)
		}
		if !page.IsTruncated || page.Marker == nil {
			return out, nil
		}
		in.Marker = page.Marker
	}
}

// Delete removes a profile. One that is gone already is no error.
func (k *Keeper) Delete(ctx context.Context, p Profile) error {
	return k.remove(ctx, &iamtypes.InstanceProfile{InstanceProfileName: &p.Name, Roles: p.roles})
}

// LeftError says that a profile stays that was made for a class by an older version of Karpenter, because we may not
// remove it.
type LeftError struct {
	Name  string
	Cause error
}

func (e *LeftError) Error() string {
	return fmt.Sprintf("the instance profile %s stays, since it is not under the path that the controller may write "+
		"to; remove it by hand: %v", e.Name, e.Cause)
}

func (e *LeftError) Unwrap() error { return e.Cause }

// DeleteAll removes every profile that was made for the class. The one that its status names is removed too if its tags
// say that it was made for the class, and if we may: if not, that is a LeftError, and all is done that can be. A
// profile that the class was given by name is not ours to remove.
func (k *Keeper) DeleteAll(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if !k.Managed(class) {
		return nil
	}
	mine, err := k.list(ctx, k.path(class))
	if err != nil {
		return err
	}
	for _, p := range mine {
		if err := k.Delete(ctx, p); err != nil {
			return err
		}
	}
	name := class.Status.InstanceProfile
	if name == "" || name == k.named(class) || slices.ContainsFunc(mine, func(p Profile) bool {
		return p.Name == name
	}) {
		return nil
	}
	found, err := k.get(ctx, name)
	if err != nil || found == nil || !k.madeFor(found, class) {
		return err
	}
	if err := k.remove(ctx, found); cloudprovider.IsUnauthorized(err) {
		return &LeftError{Name: name, Cause: err}
	} else if err != nil {
		return err
	}
	return nil
}

// madeFor tells whether the tags name cluster and class. Profiles that older versions of Karpenter made have no path of
// their own, only tags.
func (k *Keeper) madeFor(p *iamtypes.InstanceProfile, class *awsv1.EC2NodeClass) bool {
	has := func(key, value string) bool {
		return slices.ContainsFunc(p.Tags, func(t iamtypes.Tag) bool {
			return t.Key != nil && t.Value != nil && *t.Key == key && *t.Value == value
		})
	}
	return has(awsv1.ClusterTagPrefix+k.cluster, "owned") && has(awsv1.NodeClassTagKey, class.Name)
}

func (k *Keeper) remove(ctx context.Context, p *iamtypes.InstanceProfile) error {
	if err := k.strip(ctx, p); err != nil {
		return err
	}
	k.forget(*p.InstanceProfileName)
	_, err := k.api.DeleteInstanceProfile(ctx,
		&iam.DeleteInstanceProfileInput{InstanceProfileName: p.InstanceProfileName})
	if fault.IsNotFound(err) {
		return nil
	}
	return fault.Explain("deleting the instance profile "+*p.InstanceProfileName, err)
}

// strip takes the roles out of a profile; IAM deletes only profiles without.
func (k *Keeper) strip(ctx context.Context, p *iamtypes.InstanceProfile) error {
	for _, role := range p.Roles {
		_, err := k.api.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
			InstanceProfileName: p.InstanceProfileName, RoleName: role.RoleName})
		if err != nil && !fault.IsNotFound(err) {
			return fault.Explain("taking the role out of the instance profile "+*p.InstanceProfileName, err)
		}
	}
	return nil
}

func sortedTags(tags map[string]string) []iamtypes.Tag {
	var out []iamtypes.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, iamtypes.Tag{Key: new(key), Value: new(tags[key])})
	}
	return out
}
