// Package catalog knows what a node costs: it reads the instance types that every contestant is given, so that all
// bills are made out from the same list. Only Load touches the world; it reads one file.
package catalog

import (
	"encoding/json"
	"fmt"
	"os"
)

// Labels that say what a node is.
const (
	typeLabel     = "node.kubernetes.io/instance-type"
	zoneLabel     = "topology.kubernetes.io/zone"
	capacityLabel = "karpenter.sh/capacity-type"
)

// Catalog gives prices by offering.
type Catalog struct {
	prices map[offering]float64
}

type offering struct{ instanceType, zone, capacity string }

// entry is the part of an instance type in the file that the bill needs.
type entry struct {
	Name      string `json:"name"`
	Offerings []struct {
		Price        float64
		Requirements []struct {
			Key      string   `json:"key"`
			Operator string   `json:"operator"`
			Values   []string `json:"values"`
		}
	} `json:"offerings"`
}

// Load reads a file of instance types.
func Load(path string) (*Catalog, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the instance types: %w", err)
	}
	c, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("read the instance types in %s: %w", path, err)
	}
	return c, nil
}

func parse(content []byte) (*Catalog, error) {
	var entries []entry
	if err := json.Unmarshal(content, &entries); err != nil {
		return nil, err
	}
	c := &Catalog{prices: make(map[offering]float64)}
	for _, e := range entries {
		for i, o := range e.Offerings {
			key := offering{instanceType: e.Name}
			for _, r := range o.Requirements {
				if r.Operator != "In" || len(r.Values) != 1 {
					continue
				}
				switch r.Key {
				case zoneLabel:
					key.zone = r.Values[0]
				case capacityLabel:
					key.capacity = r.Values[0]
				}
			}
			if key.zone == "" || key.capacity == "" {
				return nil, fmt.Errorf("offering %d of %s names no zone or no capacity type", i, e.Name)
			}
			c.prices[key] = o.Price
		}
	}
	if len(c.prices) == 0 {
		return nil, fmt.Errorf("there are none")
	}
	return c, nil
}

// Price is what a node with these labels costs in an hour.
func (c *Catalog) Price(labels map[string]string) (float64, error) {
	key := offering{labels[typeLabel], labels[zoneLabel], labels[capacityLabel]}
	price, ok := c.prices[key]
	if !ok {
		return 0, fmt.Errorf("the catalog has no %s %q in zone %q", key.capacity, key.instanceType, key.zone)
	}
	return price, nil
}

// Kind names what a node with these labels is, without its zone.
func Kind(labels map[string]string) string { return labels[typeLabel] + "/" + labels[capacityLabel] }
