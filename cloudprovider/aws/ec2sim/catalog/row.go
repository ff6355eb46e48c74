package catalog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// row is one line of types.csv: what the source says of a type. A number that it doesn't say is zero.
type row struct {
	name                   string
	vcpu, memoryMiB        int
	arch                   []string
	previous, paravirtual  bool
	processor              string
	clockMHz               int
	features               []string
	network                string // such as "Up to 10 Gigabit"
	networkCards           []networkCard
	ipv6, placement        bool
	gpus, gpuMemoryMiB     int
	gpuModel               string
	fpgas                  int
	ebsOptimized           string // default, supported or unsupported; empty if the source doesn't say
	ebsMbps, ebsIOPS       int
	ebsMaxMbps, ebsMaxIOPS int
	disks, diskGB          int
	diskKind               string
	maxENIs, ipsPerENI     int
	zones                  map[string]string // zone id prefix (use1) -> numbers of its zones (126)
	family, size           string
	category               string // the letters that the family begins with
	generation             int
	attributes             string // what follows the generation: dn in m5dn
}

// cells reads a line by column name and remembers the first that is wrong.
type cells struct {
	index map[string]int
	line  []string
	err   error
}

func (c *cells) text(column string) string {
	i, ok := c.index[column]
	if !ok {
		c.fail(column, "the column is missing")
		return ""
	}
	return c.line[i]
}

func (c *cells) flag(column string) bool { return c.text(column) == "1" }

func (c *cells) number(column string) int {
	text := c.text(column)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		c.fail(column, fmt.Sprintf("%q is not a whole number", text))
	}
	return n
}

func (c *cells) fail(column, message string) {
	if c.err == nil {
		c.err = fmt.Errorf("column %s: %s; run make generate", column, message)
	}
}

func readRow(index map[string]int, line []string) (*row, error) {
	c := &cells{index: index, line: line}
	r := &row{
		name:         c.text("name"),
		vcpu:         c.number("vcpu"),
		memoryMiB:    c.number("memory_mib"),
		arch:         strings.Fields(c.text("arch")),
		previous:     c.flag("previous"),
		paravirtual:  c.flag("pv"),
		processor:    c.text("processor"),
		features:     strings.Fields(c.text("features")),
		clockMHz:     c.number("clock_mhz"),
		network:      c.text("network"),
		ipv6:         c.flag("ipv6"),
		placement:    c.flag("placement"),
		gpus:         c.number("gpus"),
		gpuModel:     c.text("gpu_model"),
		gpuMemoryMiB: c.number("gpu_memory_mib"),
		fpgas:        c.number("fpgas"),
		ebsOptimized: c.text("ebs"),
		ebsMbps:      c.number("ebs_mbps"),
		ebsIOPS:      c.number("ebs_iops"),
		ebsMaxMbps:   c.number("ebs_max_mbps"),
		ebsMaxIOPS:   c.number("ebs_max_iops"),
		disks:        c.number("disks"),
		diskGB:       c.number("disk_gb"),
		diskKind:     c.text("disk_kind"),
		maxENIs:      c.number("max_enis"),
		ipsPerENI:    c.number("ips_per_eni"),
		zones:        map[string]string{},
	}
	for _, part := range strings.Fields(c.text("cards")) {
		r.networkCards = append(r.networkCards, c.networkCards(part)...)
	}
	for _, part := range strings.Fields(c.text("zones")) {
		prefix, digits, ok := strings.Cut(part, "=")
		if !ok {
			c.fail("zones", fmt.Sprintf("%q is not like use1=126", part))
		}
		r.zones[prefix] = digits
	}
	r.readName()
	return r, c.err
}

// networkCard is a card as EC2 tells it: Gbit/s and interfaces.
type networkCard struct {
	baseline, peak float64
	interfaces     int
}

// networkCards reads "200/200/8x2": baseline, peak and interfaces of each of two cards.
func (c *cells) networkCards(text string) []networkCard {
	var card networkCard
	count := 0
	if _, err := fmt.Sscanf(text, "%g/%g/%dx%d", &card.baseline, &card.peak, &card.interfaces, &count); err != nil ||
		count < 1 {
		c.fail("cards", fmt.Sprintf("%q is not like 200/200/8x2", text))
	}
	return slices.Repeat([]networkCard{card}, count)
}

// readName takes a name such as m5dn.large, u7i-12tb.224xlarge or c7i-flex.large to pieces.
func (r *row) readName() {
	r.family, r.size, _ = strings.Cut(r.name, ".")
	letters := strings.IndexFunc(r.family, func(c rune) bool { return c < 'a' || c > 'z' })
	if letters < 0 {
		r.category = r.family
		return
	}
	r.category = r.family[:letters]
	rest := strings.TrimPrefix(r.family[letters:], "-")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	r.generation, _ = strconv.Atoi(rest[:digits])
	r.attributes = rest[digits:]
	if r.category == "u" && strings.HasPrefix(r.attributes, "tb") {
		r.generation, r.attributes = 1, "" // u-6tb1: the number in front of tb is its memory.
	}
}

func (r *row) metal() bool { return strings.HasPrefix(r.size, "metal") }

func (r *row) arm() bool { return strings.HasPrefix(r.arch[0], "arm64") }
