package nodeclass

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloudprovider/aws/family"
	"github.com/tenon-sh/tenon/cloudprovider/aws/fault"
	"github.com/tenon-sh/tenon/cloudprovider/aws/profile"
)

// Call is one call of a launch, rehearsed: EC2 checks it and does nothing.
type Call struct {
	// Action is the call in the words of an IAM policy, such as ec2:CreateFleet.
	Action string
	// Run makes the call as a dry run and returns what EC2 says, which for a call that would work is the error
	// DryRunOperation.
	Run func(ctx context.Context) error
}

// Rehearser says which calls a launch from a class makes.
type Rehearser interface {
	Rehearse(ctx context.Context, class *awsv1.EC2NodeClass) ([]Call, error)
}

const (
	// applause is how long a rehearsal that went well counts, unless something about the class changes.
	applause = 30 * time.Minute
	// spreading is how long EC2 may take to hear of a new instance profile.
	spreading = profile.Spreading
)

// rehearsals remembers which classes rehearsed well.
type rehearsals struct {
	now func() time.Time

	mu   sync.Mutex
	good map[types.UID]passed
}

// passed is a rehearsal: of what, and until when its outcome counts; waiting is since when EC2 does not know the
// profile.
type passed struct {
	of      string
	until   time.Time
	profile string
	waiting time.Time
}

func (h *rehearsals) counts(uid types.UID, of string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.good[uid]
	return p.of == of && h.now().Before(p.until)
}

func (h *rehearsals) remember(uid types.UID, of string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.good[uid] = passed{of: of, until: h.now().Add(applause)}
}

func (h *rehearsals) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.good, uid)
}

// waits tells since when EC2 is seen not to know a profile, and whether it is too early to blame that on something.
func (h *rehearsals) waits(uid types.UID, name string) (since time.Time, early bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.good[uid]
	if p.profile != name {
		p = passed{profile: name, waiting: h.now()}
		h.good[uid] = p
	}
	return p.waiting, h.now().Before(p.waiting.Add(spreading))
}

// rehearse makes the calls of a launch as dry runs, unless they went well lately for the class as it is.
func (r *Reconciler) rehearse(ctx context.Context, class *awsv1.EC2NodeClass) verdict {
	of, err := subject(class)
	if err != nil {
		return failed(err)
	}
	if r.rehearsed.counts(class.UID, of) {
		return yes()
	}
	calls, err := r.Rehearser.Rehearse(ctx, class)
	if err != nil {
		return unplayable(err)
	}
	for _, call := range calls {
		if v, ok := r.play(ctx, class, call); !ok {
			return v
		}
	}
	r.rehearsed.remember(class.UID, of)
	return yes()
}

// subject is what a rehearsal depends on.
func subject(class *awsv1.EC2NodeClass) (string, error) {
	status := class.Status.DeepCopy()
	status.Conditions = nil
	text, err := json.Marshal([]any{class.Spec, status})
	if err != nil {
		return "", fmt.Errorf("writing EC2NodeClass %s: %w", class.Name, err)
	}
	return string(text), nil
}

// PassingError says that a rehearsal could not be prepared, for a reason that says nothing about the class.
type PassingError struct{ Cause error }

func (e *PassingError) Error() string { return e.Cause.Error() }

func (e *PassingError) Unwrap() error { return e.Cause }

// unplayable is the verdict on a class from which no launch can be made up.
func unplayable(err error) verdict {
	_, told := errors.AsType[*fault.Error](err)
	if _, passes := errors.AsType[*PassingError](err); passes && !told {
		v := failed(err)
		v.status, v.passing = metav1.ConditionUnknown, true
		return v
	}
	if big, ok := errors.AsType[*family.TooLargeError](err); ok {
		return no(ReasonUserDataTooLarge, big.Error())
	}
	if errors.Is(err, family.ErrNoServiceCIDR) {
		v := unknown(ReasonNoClusterCIDR, err.Error())
		v.trouble = err
		return v
	}
	if told || errors.Is(err, context.Canceled) {
		return failed(err)
	}
	return no(ReasonInvalidLaunch, err.Error())
}

// play makes one call and reports whether the rehearsal may go on.
func (r *Reconciler) play(ctx context.Context, class *awsv1.EC2NodeClass, call Call) (verdict, bool) {
	err := call.Run(ctx)
	if err == nil || fault.IsDryRun(err) || aboutThatMoment(fault.Code(err)) {
		return verdict{}, true
	}
	explained := fault.Explain("rehearsing a launch", err)
	if told, ok := errors.AsType[*fault.Error](explained); ok {
		told.Fix = cmp.Or(fixDevice(class, told), told.Fix)
	}
	switch {
	case fault.IsThrottled(err):
		return failed(explained), false
	case denied(fault.Code(err)) && !fault.IsIdentity(err):
		v := no(action(call.Action)+"AuthCheckFailed", fmt.Sprintf("the controller may not call %s: %s", call.Action,
			explained.Error()))
		v.trouble = explained
		return v, false
	case unknownProfile(explained):
		return r.profileUnknown(class, explained), false
	}
	return failed(explained), false
}

// action is the name of a call without its service.
func action(name string) string {
	return name[strings.Index(name, ":")+1:]
}

// denied tells whether EC2 knows the controller but does not let it make the call.
func denied(code string) bool {
	return code == "UnauthorizedOperation" || code == "AccessDenied" || code == "AccessDeniedException"
}

// aboutThatMoment tells whether a refusal is about the instance type, zone or moment that the rehearsal happened to
// pick, or about the launch template, which a rehearsed fleet has to name and which is made only for a real launch. It
// is no fault of the class, and EC2 asks whether a call is allowed before it looks at such things.
func aboutThatMoment(code string) bool {
	if strings.HasPrefix(code, "InvalidLaunchTemplate") {
		return true
	}
	switch code {
	case "Unsupported", "UnsupportedOperation", "InsufficientInstanceCapacity", "InsufficientHostCapacity",
		"InsufficientCapacity",
		"InsufficientReservedInstanceCapacity", "InstanceLimitExceeded", "VcpuLimitExceeded",
		"MaxSpotInstanceCountExceeded",
		"SpotMaxPriceTooLow", "InsufficientFreeAddressesInSubnet", "ReservationCapacityExceeded":
		return true
	}
	return false
}

// unknownProfile tells whether EC2 says that it does not know the instance profile. There is no code of its own for it.
func unknownProfile(err error) bool {
	text := strings.ToLower(err.Error())
	code := fault.Code(err)
	return strings.Contains(code, "InvalidParameterValue") && (strings.Contains(text, "iaminstanceprofile") ||
		strings.Contains(text, "iam instance profile"))
}

// spreads tells whether a condition only waits for EC2 to hear of a new instance profile, which is no news.
func spreads(c *metav1.Condition) bool {
	return c.Status == metav1.ConditionUnknown && c.Reason == ReasonInstanceProfileNotFound &&
		strings.HasSuffix(c.Message, justMade)
}

// justMade ends what is said of a profile that is new.
const justMade = "was just made; EC2 will know it in some seconds"

// profileUnknown is the verdict on a class whose profile EC2 does not know: it takes a while to hear of a new one, and
// one that somebody deleted is made again.
func (r *Reconciler) profileUnknown(class *awsv1.EC2NodeClass, err error) verdict {
	name := class.Status.InstanceProfile
	r.Profiles.Distrust(name)
	if class.Spec.InstanceProfile == nil {
		if since, early := r.rehearsed.waits(class.UID, name); early {
			v := unknown(ReasonInstanceProfileNotFound, fmt.Sprintf("EC2 does not know the instance profile %s "+
				"(yet); if somebody deleted it, it is made again", name))
			if since.Sub(r.Profiles.MadeAt(name)) < spreading {
				v.message, v.waits = fmt.Sprintf("the instance profile %s %s", name, justMade), true
			} else {
				v.trouble = err
			}
			return v
		}
	}
	v := no(ReasonInstanceProfileNotFound, fmt.Sprintf("EC2 does not know the instance profile %s (%s); create it, "+
		"or change spec.instanceProfile", name, fault.Code(err)))
	if class.Spec.InstanceProfile == nil {
		v.message = fmt.Sprintf("EC2 does not know the instance profile %s that was made for spec.role (%s); check "+
			"that nothing deletes it", name, fault.Code(err))
	}
	v.trouble = err
	return v
}
