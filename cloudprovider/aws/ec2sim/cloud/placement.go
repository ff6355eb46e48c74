package cloud

import (
	"maps"
	"net/http"
	"sort"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloudprovider/aws/ec2sim/wire"
)

// AddPlacementGroup makes a placement group.
func (w *World) AddPlacementGroup(name string, strategy ec2types.PlacementStrategy, partitions int32,
	tags map[string]string) string {
	defer w.enter()()
	id := w.newID("pg")
	g := &ec2types.PlacementGroup{
		GroupId: aws.String(id), GroupName: aws.String(name), Strategy: strategy,
		State:    ec2types.PlacementGroupStateAvailable,
		GroupArn: aws.String(w.arn("placement-group", name)),
	}
	if strategy == ec2types.PlacementStrategyPartition {
		g.PartitionCount = aws.Int32(partitions)
	}
	if strategy == ec2types.PlacementStrategySpread {
		g.SpreadLevel = ec2types.SpreadLevelRack
	}
	w.placings[id] = g
	maps.Copy(w.tags[id], tags)
	return id
}

// RemovePlacementGroup makes a placement group go, by its id or name. As long as it has instances it stays.
func (w *World) RemovePlacementGroup(name string) *wire.Error {
	defer w.enter()()
	for id, g := range w.placings {
		if id != name && *g.GroupName != name {
			continue
		}
		for _, i := range w.instances {
			if i.PlacementGroup == id && i.State != Terminated {
				return wire.Errorf("InvalidPlacementGroup.InUse", "The placement group '%s' is in use and may not be "+
					"deleted.", name)
			}
		}
		delete(w.placings, id)
		delete(w.tags, id)
		return nil
	}
	return wire.Errorf("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
}

// PlacementGroups lists the placement groups by id.
func (w *World) PlacementGroups() []ec2types.PlacementGroup {
	defer w.enter()()
	all := make([]ec2types.PlacementGroup, 0, len(w.placings))
	for id, g := range w.placings {
		one := *g
		one.Tags = tagList(w.tags[id])
		all = append(all, one)
	}
	sort.Slice(all, func(a, b int) bool { return *all[a].GroupId < *all[b].GroupId })
	return all
}

// PlacementGroupName is the name of a placement group; empty if it is gone.
func (w *World) PlacementGroupName(id string) string {
	defer w.enter()()
	if g := w.placings[id]; g != nil {
		return *g.GroupName
	}
	return ""
}

// spreadLimit is how many instances of a rack-level spread group may run in one zone.
const spreadLimit = 7

// join puts a launch into its placement group and says in which partition.
func (w *World) join(p *place) (int32, *wire.Error) {
	if p.group == nil {
		return 0, nil
	}
	id := *p.group.GroupId
	inZone, elsewhere := 0, false
	perPartition := map[int32]int{}
	for _, i := range w.instances {
		if i.PlacementGroup != id || i.State == Terminated {
			continue
		}
		perPartition[i.Partition]++
		if i.Zone == p.zone.Name {
			inZone++
		} else {
			elsewhere = true
		}
	}
	switch p.group.Strategy {
	case ec2types.PlacementStrategySpread:
		if inZone >= spreadLimit {
			return 0, wire.Errorf("InstanceLimitExceeded", "The spread placement group %s has %d running instances "+
				"in %s, which is the limit for a zone.", aws.ToString(p.group.GroupName), inZone, p.zone.Name)
		}
	case ec2types.PlacementStrategyCluster:
		if elsewhere {
			return 0, &wire.Error{Code: "InsufficientInstanceCapacity", Status: http.StatusInternalServerError,
				Message: "A cluster placement group can't span zones: instances of " + aws.ToString(p.group.GroupName) +
					" run in another zone than " + p.zone.Name + "."}
		}
	case ec2types.PlacementStrategyPartition:
		return w.partition(p, perPartition)
	}
	return 0, nil
}

func (w *World) partition(p *place, used map[int32]int) (int32, *wire.Error) {
	count := aws.ToInt32(p.group.PartitionCount)
	if asked := aws.ToInt32(p.request.Placement.PartitionNumber); asked != 0 {
		if asked < 1 || asked > count {
			return 0, wire.Errorf("InvalidParameterValue", "Value (%d) for parameter partitionNumber is invalid. The "+
				"placement group has %d partitions.", asked, count)
		}
		return asked, nil
	}
	best := int32(1)
	for n := int32(2); n <= count; n++ {
		if used[n] < used[best] {
			best = n
		}
	}
	return best, nil
}
