// Package profile makes, finds and removes the instance profiles through which nodes act as the role of their
// EC2NodeClass.
//
// A profile belongs to one class and one role. Its name follows from both, from the class's generation and from the
// profile that it comes after: asking for it twice, or again after a crash, is the same act, and yet no name is used
// again, because EC2 remembers for minutes what a name stood for. Its path names region, cluster and class, so that
// what nobody needs can be found:
//
//	/karpenter/{region}/{cluster}/{uid of the class}/
//
// A class that changes its role gets another profile; the first stays until no node uses it. What the package knows is
// in IAM, except for which profiles it has seen to be in order lately.
package profile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/mitchellh/hashstructure/v2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
)

// API is what is asked of IAM.
type API interface {
	GetInstanceProfile(ctx context.Context, in *iam.GetInstanceProfileInput,
		opts ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error)
	ListInstanceProfiles(ctx context.Context, in *iam.ListInstanceProfilesInput,
		opts ...func(*iam.Options)) (*iam.ListInstanceProfilesOutput, error)
	CreateInstanceProfile(ctx context.Context, in *iam.CreateInstanceProfileInput,
		opts ...func(*iam.Options)) (*iam.CreateInstanceProfileOutput, error)
	AddRoleToInstanceProfile(ctx context.Context, in *iam.AddRoleToInstanceProfileInput,
		opts ...func(*iam.Options)) (*iam.AddRoleToInstanceProfileOutput, error)
	RemoveRoleFromInstanceProfile(ctx context.Context, in *iam.RemoveRoleFromInstanceProfileInput,
		opts ...func(*iam.Options)) (*iam.RemoveRoleFromInstanceProfileOutput, error)
	DeleteInstanceProfile(ctx context.Context, in *iam.DeleteInstanceProfileInput,
		opts ...func(*iam.Options)) (*iam.DeleteInstanceProfileOutput, error)
}

// trust is how long a profile that was in order is not looked at again.
const trust = 15 * time.Minute

// Options are what a Keeper works with.
type Options struct {
	API             API
	Cluster, Region string
	// Default is the profile of classes that name neither a profile nor a role; empty for none. Only classes of older
	// versions of the API may be like that.
	Default string
	// Now tells the time.
	Now func() time.Time
}

// Keeper keeps instance profiles. It is safe for concurrent use.
type Keeper struct {
	api             API
	cluster, region string
	fallback        string
	now             func() time.Time

	mu sync.Mutex
	// sound holds, by name and role, until when a profile is trusted to be in order.
	sound map[[2]string]time.Time
	// made is when a profile was made or got its role, by name.
	made map[string]time.Time
}

// New returns a Keeper that has looked at nothing yet.
func New(o Options) *Keeper {
	return &Keeper{api: o.API, cluster: o.Cluster, region: o.Region, fallback: o.Default, now: o.Now,
		sound: map[[2]string]time.Time{}, made: map[string]time.Time{}}
}

// Ensure returns the name of the instance profile of the class: the one that it names, or one for its role, which is
// made if it is not there.
func (k *Keeper) Ensure(ctx context.Context, class *awsv1.EC2NodeClass) (string, error) {
	if named := k.named(class); named != "" {
		return named, nil
	}
	if class.Spec.Role == "" {
		return "", errNoProfile
	}
	role := roleName(class.RoleIn(k.cluster))
	// The one from before is kept if it still fits: Karpenter has made it, or an older version of us.
	if name := class.Status.InstanceProfile; name != "" {
		fits, err := k.fits(ctx, name, role)
		if err != nil {
			return "", err
		}
		if fits {
			return name, nil
		}
	}
	name, err := k.nameFor(class, role)
	if err != nil {
		return "", err
	}
	if k.trusted(name, role) {
		return name, nil
	}
	if err := k.make(ctx, class, name, role); err != nil {
		return "", err
	}
	k.trustNow(name, role)
	return name, nil
}

// errNoProfile is what a class lacks without which its nodes can't join.
var errNoProfile = errors.New("spec.role and spec.instanceProfile are both empty; give one of them, or give the " +
	"controller --aws-default-instance-profile")

// unsaidRole is the role that the conversion from v1beta1 writes into a class that names neither role nor profile. The
// variable in it can't be part of a role's name.
const unsaidRole = awsv1.DefaultRolePrefix + awsv1.ClusterNameVariable

// named is the profile that the class names, or the default if it leaves the choice to us; empty if one is made for its
// role.
func (k *Keeper) named(class *awsv1.EC2NodeClass) string {
	switch {
	case class.Spec.InstanceProfile != nil:
		return *class.Spec.InstanceProfile
	case class.Spec.Role == "", class.Spec.Role == unsaidRole:
		return k.fallback
	}
	return ""
}

// fits tells whether there is a profile of the name and role.
func (k *Keeper) fits(ctx context.Context, name, role string) (bool, error) {
	if k.trusted(name, role) {
		return true, nil
	}
	found, err := k.get(ctx, name)
	if err != nil || found == nil || !holds(found, role) {
		return false, err
	}
	k.trustNow(name, role)
	return true, nil
}

// make makes the profile and gives it the role, as far as that has not been done.
func (k *Keeper) make(ctx context.Context, class *awsv1.EC2NodeClass, name, role string) error {
	found, err := k.get(ctx, name)
	if err != nil {
		return err
	}
	if found == nil {
		_, err := k.api.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
			InstanceProfileName: &name, Path: new(k.path(class)), Tags: k.tags(class)})
		if err != nil && fault.Code(err) != "EntityAlreadyExists" {
			return fault.Explain("creating the instance profile "+name+" of spec.role", err)
		}
		if err == nil {
			k.noteMade(name, k.now())
		}
	}
	if found != nil && holds(found, role) {
		return nil
	}
	if found != nil {
		// A profile has one role. Ours never has another, unless somebody changed it.
		if err := k.strip(ctx, found); err != nil {
			return err
		}
	}
	_, err = k.api.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name,
		RoleName: &role})
	err = fault.Explain(fmt.Sprintf("giving the instance profile %s the role %s of spec.role", name, role), err)
	// IAM has the same code for a profile that it does not see yet, which is a matter of seconds.
	if fault.Code(err) == "NoSuchEntity" && strings.Contains(err.Error(), "role with name") {
		return &NoRoleError{Role: role, Cause: err}
	}
	if fault.Code(err) == "NoSuchEntity" && k.now().Sub(k.MadeAt(name)) < Spreading {
		return &EarlyError{Name: name, Cause: err}
	}
	if err == nil {
		k.noteMade(name, k.now())
	}
	return err
}

// Spreading is how long a new instance profile may take until all of AWS knows it; some seconds are the rule.
const Spreading = 2 * time.Minute

// EarlyError says that IAM does not know yet a profile that it has just made.
type EarlyError struct {
	Name  string
	Cause error
}

func (e *EarlyError) Error() string {
	return fmt.Sprintf("the instance profile %s was just made and IAM does not know it yet; wait some seconds", e.Name)
}

func (e *EarlyError) Unwrap() error { return e.Cause }

// NoRoleError says that the role of a class does not exist.
type NoRoleError struct {
	Role  string
	Cause error
}

func (e *NoRoleError) Error() string {
	return fmt.Sprintf("no IAM role is named %s (iam:AddRoleToInstanceProfile: NoSuchEntity); create the role, or "+
		"change spec.role", e.Role)
}

func (e *NoRoleError) Unwrap() error { return e.Cause }

// get is the profile of the name; nil if there is none.
func (k *Keeper) get(ctx context.Context, name string) (*iamtypes.InstanceProfile, error) {
	answer, err := k.api.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if fault.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Explain("looking at the instance profile "+name, err)
	}
	if p := answer.InstanceProfile; p != nil && p.CreateDate != nil && k.MadeAt(name).IsZero() {
		k.noteMade(name, *p.CreateDate)
	}
	return answer.InstanceProfile, nil
}

// MadeAt is when a profile was made, or given its role since then. It is zero for one that was never looked at.
func (k *Keeper) MadeAt(name string) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.made[name]
}

func (k *Keeper) noteMade(name string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made[name] = at
}

// holds tells whether the profile has the role and no other.
func holds(p *iamtypes.InstanceProfile, role string) bool {
	return len(p.Roles) == 1 && p.Roles[0].RoleName != nil && *p.Roles[0].RoleName == role
}

// roleName is the role without a path: IAM tells roles apart by name alone.
func roleName(role string) string {
	return role[strings.LastIndex(role, "/")+1:]
}

// nameFor is what the profile of the class for the role is called.
func (k *Keeper) nameFor(class *awsv1.EC2NodeClass, role string) (string, error) {
	parts := []string{k.region, string(class.UID), role, strconv.FormatInt(class.Generation, 10),
		class.Status.InstanceProfile}
	hash, err := hashstructure.Hash(parts, hashstructure.FormatV2, nil)
	if err != nil {
		return "", fmt.Errorf("naming the instance profile of EC2NodeClass %s: %w", class.Name, err)
	}
	return fmt.Sprintf("%s_%d", k.cluster, hash), nil
}

// Managed tells whether profiles were made for the class, so that there may be some to remove. Of a class that was
// always given a profile by name nothing is asked of IAM, which many private networks can't reach.
func (k *Keeper) Managed(class *awsv1.EC2NodeClass) bool {
	if k.named(class) == "" || class.Annotations[MadeAnnotationKey] != "" {
		return true
	}
	return k.Replaces(class)
}

// Replaces tells whether the class is about to use a profile of its own in place of one that was made for it.
func (k *Keeper) Replaces(class *awsv1.EC2NodeClass) bool {
	named, used := k.named(class), class.Status.InstanceProfile
	return named != "" && used != named && strings.HasPrefix(used, k.cluster+"_")
}

// MadeAnnotationKey is on a class that has its own instance profile now and for which profiles were made before.
const MadeAnnotationKey = "tenon.sh/instance-profiles"

// root is the path under which all profiles of the cluster are.
func (k *Keeper) root() string {
	return fmt.Sprintf("/karpenter/%s/%s/", k.region, k.cluster)
}

func (k *Keeper) path(class *awsv1.EC2NodeClass) string {
	return k.root() + string(class.UID) + "/"
}

// tags say whom the profile belongs to.
func (k *Keeper) tags(class *awsv1.EC2NodeClass) []iamtypes.Tag {
	all := map[string]string{}
	for key, value := range class.Spec.Tags {
		all[key] = value
	}
	all[awsv1.ClusterTagPrefix+k.cluster] = "owned"
	all[awsv1.EKSClusterNameTagKey] = k.cluster
	all[awsv1.NodeClassTagKey] = class.Name
	all["topology.kubernetes.io/region"] = k.region
	return sortedTags(all)
}

func (k *Keeper) trusted(name, role string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now().Before(k.sound[[2]string{name, role}])
}

func (k *Keeper) trustNow(name, role string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sound[[2]string{name, role}] = k.now().Add(trust)
}

// Distrust makes the next Ensure look at the profile again: EC2 does not know it.
func (k *Keeper) Distrust(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.sound {
		if key[0] == name {
			delete(k.sound, key)
		}
	}
}

// forget drops what is known of a profile that goes.
func (k *Keeper) forget(name string) {
	k.Distrust(name)
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.made, name)
}
