package cloud

import (
	"fmt"
	"net/http"
	"path"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// CapacityRule says how many instances each matching pool can hold, those that run included. A pool is an instance type
// in a zone in a market. Empty or "*" matches everything, "m5.*" a family. The last rule that matches a pool counts; a
// pool that no rule matches never runs out.
type CapacityRule struct {
	Type, Zone string
	Market     Market
	Total      int
	// Code is the error when the pool is full; InsufficientInstanceCapacity if empty. With another code a pool can be
	// made to fail as it pleases a test: UnfulfillableCapacity, Unsupported,
	// AuthFailure.ServiceLinkedRoleCreationNotPermitted.
	Code string
}

type poolID struct {
	kind, zone string
	market     Market
}

// SetCapacity adds a rule. Machines that run are left alone.
func (w *World) SetCapacity(rule CapacityRule) {
	defer w.enter()()
	w.capacity = append(w.capacity, rule)
}

// ClearCapacity forgets all rules: there is room for everything again.
func (w *World) ClearCapacity() {
	defer w.enter()()
	w.capacity = nil
}

func (r CapacityRule) matches(p poolID) bool {
	return like(r.Type, p.kind) && like(r.Zone, p.zone) && like(string(r.Market), string(p.market))
}

// like matches a pattern with stars; an empty one matches everything.
func like(pattern, value string) bool {
	if pattern == "" || pattern == value {
		return true
	}
	ok, err := path.Match(pattern, value)
	return err == nil && ok
}

// Unlimited is what Free returns for a pool that never runs out.
const Unlimited = 1 << 30

// Free is how many more instances a pool can hold.
func (w *World) Free(kind, zone string, market Market) int {
	defer w.enter()()
	free, _ := w.free(poolID{kind, zone, market})
	return free
}

func (w *World) free(p poolID) (int, string) {
	for n := len(w.capacity) - 1; n >= 0; n-- {
		rule := w.capacity[n]
		if !rule.matches(p) {
			continue
		}
		if rule.Total <= 0 {
			return 0, rule.Code
		}
		return max(0, rule.Total-w.inPool(p)), rule.Code
	}
	return Unlimited, ""
}

// inPool counts the living instances of a pool; those in a reservation are in none.
func (w *World) inPool(p poolID) int {
	n := 0
	for _, i := range w.instances {
		if i.State != Terminated && i.Type == p.kind && i.Zone == p.zone && i.Market == p.market &&
			i.CapacityReservation == "" {
			n++
		}
	}
	return n
}

// checkPool is the error for a pool without room.
func (w *World) checkPool(p poolID) *wire.Error {
	free, code := w.free(p)
	if free > 0 {
		return nil
	}
	if code != "" && code != "InsufficientInstanceCapacity" {
		return wire.Errorf(code, "The pool %s %s in %s answers with %s.", p.market, p.kind, p.zone, code)
	}
	message := fmt.Sprintf("We currently do not have sufficient %s capacity in the Availability Zone you requested "+
		"(%s).", p.kind, p.zone)
	if p.market == Spot {
		message = "There is no Spot capacity available that matches your request."
	}
	return &wire.Error{Code: "InsufficientInstanceCapacity", Message: message, Status: http.StatusInternalServerError}
}

// checkQuotas is the error for one more instance than the account may have.
func (w *World) checkQuotas(kind *ec2types.InstanceTypeInfo, market Market) *wire.Error {
	spot, vcpus := 0, 0
	if w.cfg.Quotas == (Quotas{}) {
		return nil
	}
	for _, i := range w.instances {
		switch {
		case i.State == Terminated:
		case i.Market == Spot:
			spot++
		case w.types[i.Type] != nil:
			vcpus += vcpusOf(w.types[i.Type])
		}
	}
	if q := w.cfg.Quotas.SpotInstances; market == Spot && q > 0 && spot >= q {
		return wire.Errorf("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	}
	if q := w.cfg.Quotas.OnDemandVCPUs; market == OnDemand && q > 0 && vcpus+vcpusOf(kind) > q {
		return wire.Errorf("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit "+
			"of %d allows for the instance bucket that the specified instance type belongs to.", q)
	}
	return nil
}

// SetQuotas changes the account's limits.
func (w *World) SetQuotas(q Quotas) {
	defer w.enter()()
	w.cfg.Quotas = q
}

func vcpusOf(kind *ec2types.InstanceTypeInfo) int {
	if kind.VCpuInfo == nil {
		return 0
	}
	return int(aws.ToInt32(kind.VCpuInfo.DefaultVCpus))
}
