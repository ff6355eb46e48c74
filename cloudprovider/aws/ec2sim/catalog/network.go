package catalog

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aws/amazon-vpc-resource-controller-k8s/pkg/aws/vpc"
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// family is what the sizes of a family have in common, for rules that look at more than one size.
type family struct {
	largest int     // vCPUs of the largest size
	perVCPU float64 // Gbit/s for each vCPU of the smallest size that has a fixed bandwidth; 0 if none has
	clocks  map[string]int
}

// familiesOf looks at all rows once.
func familiesOf(rows []row) map[string]family {
	out := map[string]family{}
	smallest := map[string]int{}
	for i := range rows {
		r := &rows[i]
		f := out[r.family]
		if f.clocks == nil {
			f.clocks = map[string]int{}
		}
		f.largest = max(f.largest, r.vcpu)
		f.clocks[r.processor] = max(f.clocks[r.processor], r.clockMHz)
		if b, fixed := bandwidth(r.network); fixed && b > 0 && (smallest[r.family] == 0 ||
			r.vcpu < smallest[r.family]) {
			smallest[r.family] = r.vcpu
			f.perVCPU = b / float64(r.vcpu)
		}
		out[r.family] = f
	}
	return out
}

// clockOf is the highest clock speed that any family has for the processor.
func clockOf(families map[string]family, processor string) int {
	clock := 0
	for _, f := range families {
		clock = max(clock, f.clocks[processor])
	}
	return clock
}

// bandwidth reads "10 Gigabit", "Up to 10 Gigabit" (not fixed) and "4x 100 Gigabit". Words such as "Moderate" are none.
func bandwidth(text string) (gbit float64, fixed bool) {
	text, upTo := strings.CutPrefix(text, "Up to ")
	text, ok := strings.CutSuffix(text, " Gigabit")
	if !ok {
		return 0, false
	}
	times := 1
	if before, after, found := strings.Cut(text, "x "); found {
		times, _ = strconv.Atoi(before)
		text = after
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	return value * float64(times), !upTo
}

// burstPerMiB is what burstable types may always send, in Gbit/s for each MiB of memory: 64 Mbit/s for a GiB.
const burstPerMiB = 0.064 / 1024

// baseline is the bandwidth that is always there. A fixed one is what it says. Of "Up to" the type has the share that
// its vCPUs have in the smallest size of its family with a fixed bandwidth; a burstable type has a share by its memory.
// Where neither helps, a vCPU stands for a sixteenth. EC2 tells whole Mbit/s, rounded down.
func (r *row) baseline(f family) float64 {
	peak, fixed := bandwidth(r.network)
	always := peak
	switch {
	case fixed || peak == 0:
	case r.category == "t":
		always = float64(r.memoryMiB) * burstPerMiB
	case f.perVCPU > 0:
		always = f.perVCPU * float64(r.vcpu)
	default:
		always = peak * float64(r.vcpu) / 16
	}
	return math.Floor(min(peak, always)*1000+1e-6) / 1000
}

func (r *row) limits() (*vpc.VPCLimits, bool) {
	limits, ok := vpc.Limits[r.name]
	return limits, ok
}

// cards lists how many interfaces each network card takes: as EC2 says; else as the interface limits know, which lack a
// few types; those have one card, with what the source says or else four interfaces of fifty addresses.
func (r *row) cards() (interfaces []int, addresses int) {
	if len(r.networkCards) > 0 {
		for _, card := range r.networkCards {
			interfaces = append(interfaces, card.interfaces)
		}
		return interfaces, r.ipsPerENI
	}
	if limits, ok := r.limits(); ok && len(limits.NetworkCards) > 0 {
		for _, card := range limits.NetworkCards {
			interfaces = append(interfaces, int(card.MaximumNetworkInterfaces))
		}
		return interfaces, limits.IPv4PerInterface
	}
	if r.maxENIs > 0 {
		return []int{r.maxENIs}, r.ipsPerENI
	}
	return []int{4}, 50
}

func (r *row) networkInfo(f family) *ec2types.NetworkInfo {
	interfaces, addresses := r.cards()
	info := &ec2types.NetworkInfo{
		DefaultNetworkCardIndex:      aws.Int32(0),
		EfaSupported:                 aws.Bool(r.efa(f)),
		EnaSrdSupported:              aws.Bool(false),
		EnaSupport:                   ec2types.EnaSupportRequired,
		EncryptionInTransitSupported: aws.Bool(r.encrypted()),
		Ipv4AddressesPerInterface:    aws.Int32(int32(addresses)),
		Ipv6Supported:                aws.Bool(r.ipv6),
		Ipv6AddressesPerInterface:    aws.Int32(0),
		MaximumNetworkCards:          aws.Int32(int32(len(interfaces))),
		NetworkPerformance:           aws.String(r.network),
	}
	if r.ipv6 {
		info.Ipv6AddressesPerInterface = aws.Int32(int32(addresses))
	}
	if limits, ok := r.limits(); ok {
		info.DefaultNetworkCardIndex = aws.Int32(int32(limits.DefaultNetworkCardIndex))
	}
	if r.hypervisor() == ec2types.InstanceTypeHypervisorXen {
		info.EnaSupport = ec2types.EnaSupportUnsupported
	}
	total := 0
	for i, n := range interfaces {
		info.NetworkCards = append(info.NetworkCards, r.card(f, i, n, len(interfaces)))
		total += n
	}
	info.MaximumNetworkInterfaces = aws.Int32(int32(total))
	if aws.ToBool(info.EfaSupported) {
		info.EfaInfo = &ec2types.EfaInfo{MaximumEfaInterfaces: aws.Int32(int32(len(interfaces)))}
	}
	return info
}

// card: what EC2 says of each card, which may be the total on every one of them or less than their share. Where that is
// not known, the cards of a type share its bandwidth evenly.
func (r *row) card(f family, index, interfaces, cards int) ec2types.NetworkCardInfo {
	card := ec2types.NetworkCardInfo{
		NetworkCardIndex:         aws.Int32(int32(index)),
		MaximumNetworkInterfaces: aws.Int32(int32(interfaces)),
		NetworkPerformance:       aws.String(r.network),
	}
	if len(r.networkCards) > 0 {
		if told := r.networkCards[index]; told.peak > 0 {
			card.BaselineBandwidthInGbps, card.PeakBandwidthInGbps = aws.Float64(told.baseline), aws.Float64(told.peak)
		}
		return card
	}
	peak, fixed := bandwidth(r.network)
	if peak == 0 {
		return card
	}
	share := peak / float64(cards)
	card.PeakBandwidthInGbps = aws.Float64(share)
	card.BaselineBandwidthInGbps = aws.Float64(r.baseline(f) / float64(cards))
	if cards > 1 && fixed {
		card.NetworkPerformance = aws.String(fmt.Sprintf("%s Gigabit", strconv.FormatFloat(share, 'f', -1, 64)))
	}
	return card
}

// efa: on Nitro, with 100 Gbit/s at least, from the eighth generation on with 40, as the largest size of a family with
// 30, or beside an NVIDIA accelerator on x86 with 25.
func (r *row) efa(f family) bool {
	gbit, fixed := bandwidth(r.network)
	if !fixed || r.hypervisor() == ec2types.InstanceTypeHypervisorXen || strings.HasPrefix(r.category, "u") ||
		r.category == "mac" {
		return false
	}
	d, gpu := r.gpu()
	return gbit >= 100 || (r.generation >= 8 && gbit >= 40) || (r.vcpu == f.largest && gbit >= 30) ||
		(gpu && d.manufacturer == "NVIDIA" && !r.arm() && gbit >= 25)
}

// encrypted: between Nitro machines of the sixth generation on, and in the families before it that were built on the
// same cards: those with much network (n), local disks of the time (D3, I3en), accelerators, and AMD's C5.
func (r *row) encrypted() bool {
	if r.hypervisor() == ec2types.InstanceTypeHypervisorXen || r.category == "mac" {
		return false
	}
	if r.generation >= 6 {
		return true
	}
	switch r.category {
	case "g", "inf", "trn", "dl", "vt", "hpc", "im", "is", "f", "u":
		return true
	case "p":
		return r.generation >= 4 || r.family == "p3dn"
	case "x":
		return r.generation >= 2
	case "i", "d":
		return r.generation >= 4 || r.family == "i3en" || r.category+"3" == "d3"
	default:
		return strings.Contains(r.attributes, "n") || r.family == "c5a" || r.family == "c5ad"
	}
}
