package pack_test

import (
	"math"
	"math/rand"
	"slices"

	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// recipe says what a generated problem has.
type recipe struct {
	stacks, offers, most int // most pods to an item
	sites                bool
	marks, shelves       bool
	stocks, suits, likes bool
}

// everything has it all, in proportions that vary with the seed.
func everything(r *rand.Rand) recipe {
	yes := func() bool { return r.Intn(3) == 0 }
	return recipe{stacks: 1 + r.Intn(12), offers: 1 + r.Intn(12), most: 1 + r.Intn(30), sites: yes(),
		marks: yes(), shelves: yes(), stocks: yes(), suits: yes(), likes: yes()}
}

func generate(r *rand.Rand, c recipe) *pack.Problem {
	p := &pack.Problem{Limits: []pack.Limit{{Nodes: -1}}}
	for range c.offers {
		o := pack.BinType{Reservation: -1}
		o.Room[resource.CPU], o.Room[resource.Memory] = int64(1+r.Intn(16))*1000, int64(1+r.Intn(16))<<30
		o.Room[resource.Pods] = int64(1 + r.Intn(20))
		if r.Intn(6) == 0 {
			o.Room[5] = int64(r.Intn(5) - 1)
		}
		o.Charge = o.Room.Floor()
		size := float64(o.Room[resource.CPU])/1000 + float64(o.Room[resource.Memory]>>30)/4
		o.Price = math.Round(size*(0.5+r.Float64())*100) / 100
		p.BinTypes = append(p.BinTypes, o)
	}
	p.FeasibleSets = []require.Bits{require.AllBits(c.offers)}
	if c.sites {
		for range 3 {
			b := require.NewBits(c.offers)
			for o := range c.offers {
				if r.Intn(2) == 0 {
					b.Set(o)
				}
			}
			p.FeasibleSets = append(p.FeasibleSets, b)
		}
	}
	for range c.stacks {
		s := pack.Item{Count: 1 + r.Intn(c.most), Preference: -1, Rank: int32(r.Intn(3))}
		s.Need[resource.CPU], s.Need[resource.Memory] = int64(r.Intn(9))*500, int64(r.Intn(9))<<29
		s.Need[resource.Pods] = 1
		if r.Intn(12) == 0 {
			s.Need[5] = int64(1 + r.Intn(2))
		}
		s.Feasible = r.Intn(len(p.FeasibleSets))
		if r.Intn(2) == 0 {
			s.Unrestricted = s.Feasible
		}
		p.Items = append(p.Items, s)
	}
	c.decorate(r, p)
	return p
}

func (c recipe) decorate(r *rand.Rand, p *pack.Problem) {
	if c.marks {
		for i := range p.Items {
			markStack(r, &p.Items[i])
		}
	}
	if c.shelves {
		p.Limits = append(p.Limits, pack.Limit{Nodes: int64(r.Intn(8) - 1)}, pack.Limit{Nodes: -1})
		p.Limits[2].Limited[resource.CPU], p.Limits[2].Left[resource.CPU] = true, int64(r.Intn(60)-3)*1000
		for i := range p.BinTypes {
			p.BinTypes[i].Limit = r.Intn(3)
		}
	}
	if c.stocks {
		p.Reservations = []int{r.Intn(3), r.Intn(5)}
		for i := range p.BinTypes {
			p.BinTypes[i].Reservation = r.Intn(3) - 1
		}
	}
	if c.likes {
		for range 2 {
			row := make([]float32, len(p.BinTypes))
			for o := range row {
				row[o] = float32(r.Intn(3)) / 2
			}
			p.Preferences = append(p.Preferences, row)
		}
		for i := range p.Items {
			p.Items[i].Preference = r.Intn(3) - 1
		}
	}
	if c.suits {
		bad, most := r.Intn(len(p.BinTypes)), 1+r.Intn(10)
		p.Suits = func(binType int, content []pack.Part) bool {
			even, odd, n := false, false, 0
			for _, part := range content {
				even, odd = even || part.Item%2 == 0, odd || part.Item%2 == 1
				n += part.Count
			}
			return binType != bad && n <= most && !(even && odd)
		}
	}
}

func markStack(r *rand.Rand, s *pack.Item) {
	for id := range int32(3) {
		switch r.Intn(8) {
		case 0:
			s.Excludes = append(s.Excludes, id)
		case 1:
			s.ExcludedAs = append(s.ExcludedAs, id)
		case 2:
			s.Excludes, s.ExcludedAs = append(s.Excludes, id), append(s.ExcludedAs, id)
		}
	}
	for id := int32(3); id < 6; id++ {
		if r.Intn(4) == 0 {
			s.Caps = append(s.Caps, pack.Cap{ID: id, Most: int32(r.Intn(4))})
		}
		if r.Intn(3) == 0 {
			s.Counts = append(s.Counts, id)
		}
	}
	slices.Sort(s.Excludes)
}
